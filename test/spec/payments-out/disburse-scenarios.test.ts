import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { type Provider, providers } from '../../../src/shared/providers.ts'
import { entriesOf } from '../../kit/money-out.ts'
import type { RestAnswer, TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, each, openFixture, perOperator, second } from '../../kit/fixture.ts'

// The test numbers in money out, by `POST /deposit` at every operator: debited once, or not at all.

const fixture = await openFixture()
const { owner } = fixture.database
const funded = 200_000
const amount = 5_000

/** Ordered so that no circuit opens: a success stands between failures. */
const played: readonly (readonly [code: string, parameter: string, what: string])[] = [
  ['00', '00', 'nothing goes wrong'],
  ['30', '00', 'the callback is lost'],
  ['31', '05', 'the callback comes five times'],
  ['20', '00', 'the answer is lost'],
  ['32', '00', 'a stale "pending" after the success'],
  ['22', '00', '503 before the execution'],
  ['33', '00', 'the callback is wrongly signed'],
  ['23', '00', '500 after the execution'],
  ['34', '00', 'the callback comes before the answer'],
  ['24', '00', 'carried out after the connection broke'],
  ['35', '00', 'the callback says failed, the operator paid'],
  ['26', '00', 'the page of a gateway'],
  ['41', '40', '40 francs less are paid'],
  ['25', '00', '429 with Retry-After'],
  ['51', '00', 'our float is empty'],
  ['40', '50', 'taken back after 50 s'],
  ['27', '00', 'never reachable'],
  ['21', '12', 'answered after 12 s'],
]
const paidOnce = ['00', '20', '21', '22', '23', '24', '25', '26', '30', '31', '32', '33', '34', '35'] as const

const shops: Record<string, TestMerchant> = {}
const answers = new Map<string, Record<string, RestAnswer>>()
/** The warnings and errors of the log meanwhile. */
const logged: unknown[][] = []

beforeAll(async () => {
  for (const operator of providers) {
    const shop = await fixture.merchant()
    await fixture.fund(shop, funded)
    shops[operator] = shop
  }
  const { log } = fixture.app.services
  const spies = [vi.spyOn(log, 'warn'), vi.spyOn(log, 'error')]
  const under = new AbortController()
  const others = Promise.all([lowerFences(under.signal), keepOperatorsWell(under.signal)])
  await Promise.all(
    played.map(async ([code, parameter], index) => {
      await sleep(index * 80)
      const results = await perOperator((operator) =>
        fixture.deposit(shopOf(operator), {
          amount,
          payment_method: operator,
          customer_phone: customer(code, parameter),
        }),
      )
      answers.set(code, results)
    }),
  )
  under.abort()
  await others
  for (const spy of spies) {
    logged.push(...spy.mock.calls)
    spy.mockRestore()
  }
})

/** Ends the time in which an earlier call may still arrive, for calls that the operator did not execute. */
async function lowerFences(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await owner.query(
      `UPDATE operator_request SET fence_until = now() - interval '1 ms'
       WHERE state = 'doubt' AND attempt = 1 AND fence_until > now() AND phone ~ '^.22370(22|26)'`,
    )
    await sleep(250)
  }
}

/**
 * Pays others all the while, so that no operator fails five times in a row: on a busy machine the deposits
 * above do not arrive in their order.
 */
async function keepOperatorsWell(signal: AbortSignal): Promise<void> {
  const other = await fixture.merchant()
  await fixture.fund(other, 100_000_000)
  while (!signal.aborted) {
    await perOperator((operator) => fixture.deposit(other, { payment_method: operator }))
    await sleep(50)
  }
}

function shopOf(operator: Provider): TestMerchant {
  const shop = shops[operator]
  if (!shop) throw new Error(`no shop at ${operator}`)
  return shop
}

const statuses = (code: string) => perOperator(async (operator) => answers.get(code)?.[operator]?.status)
const idOf = (code: string, operator: Provider) => answers.get(code)?.[operator]?.body.data.transaction_id

/** The traces of a deposit in our books, in the events log and at the operator. */
const traces = (code: string) =>
  perOperator(async (operator) => {
    const id = idOf(code, operator)
    const entries = await entriesOf(fixture.database.database.pool, `transaction:${String(id)}`)
    const executions = await fixture.executionsOf(id)
    return {
      moved: entries.map((line) => line.replace(/clearing_\w+/, 'clearing')),
      events: await fixture.eventsOf(id),
      paid: executions.map(({ kind, count, amount: francs, reversed }) => [kind, count, francs, reversed]),
    }
  })

const reserve = 'reserve available > reserved 5000'
const posted = { events: ['deposit_processing', 'deposit_completed'], paid: [['disburse', 1, '5000', '0']] }

describe('200 success: debited once, with every fault on the way', () => {
  test.each(played.filter(([code]) => paidOnce.some((known) => known === code)))(
    '%s/%s: %s',
    async (code) => {
      expect(await statuses(code)).toEqual(each(200))
      expect(await traces(code)).toEqual(
        each({ ...posted, moved: [reserve, 'post reserved > clearing 5000'] }),
      )
    },
  )

  test('41/40: the paid amount leaves, the rest is withheld', async () => {
    expect(await statuses('41')).toEqual(each(200))
    const moved = [reserve, 'post reserved > clearing 4960', 'withhold reserved > unallocated 40']
    expect(await traces('41')).toEqual(each({ ...posted, moved, paid: [['disburse', 1, '4960', '0']] }))
  })
})

describe('400 failed: nothing left, the money is free again', () => {
  test.each([
    ['27', 'OPERATOR_UNAVAILABLE'],
    ['51', 'FLOAT_INSUFFICIENT'],
  ])('%s: %s', async (code, reason) => {
    expect(await statuses(code)).toEqual(each(400))
    for (const operator of providers) {
      const { data } = answers.get(code)?.[operator]?.body ?? {}
      expect(data).toMatchObject({ status: 'failed' })
      const record = await fixture.record(shopOf(operator), data.transaction_id)
      expect(record['response_data'].failure.reason).toBe(reason)
    }
    expect(await traces(code)).toEqual(
      each({
        moved: [reserve, 'void reserved > available 5000'],
        events: ['deposit_processing', 'deposit_failed'],
        paid: [],
      }),
    )
  })

  test('an empty float raises an alarm', () => {
    expect(logged.filter(([, words]) => words === 'alarm: our float at an operator is empty')).toHaveLength(4)
  })
})

test('35: an operator that contradicts its own callback is logged', () => {
  const about = `transaction:${String(idOf('35', 'OperatorA'))}`
  expect(logged).toContainEqual([
    expect.objectContaining({ about }),
    'an operator contradicts its own callback',
  ])
})

test('40: taken back, the money is there again, also without a callback', async () => {
  expect(await statuses('40')).toEqual(each(200))
  await fixture.advance(120 * second)
  const moved = [reserve, 'post reserved > clearing 5000', 'reverse clearing > available 5000']
  await eventually(async () =>
    expect(await traces('40')).toEqual(
      each({
        moved,
        events: [...posted.events, 'deposit_reversed'],
        paid: [['disburse', 1, '5000', '5000']],
      }),
    ),
  )
  // 14 of them were paid, one with 40 francs less, which are withheld; three came back or never left.
  for (const operator of providers) {
    const { body } = await fixture.rest('GET', '/balance', { token: shopOf(operator).token })
    expect(body.data).toMatchObject({ available: funded - 15 * amount, reserved: 0 })
  }
})
