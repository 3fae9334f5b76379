import { createClient } from 'graphql-sse'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { scenarios } from '../../../src/simulator/scenarios.ts'
import type { Provider } from '../../../src/shared/providers.ts'
import { reserveForApproval } from '../../kit/money-out.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, each, minute, openFixture, perOperator, second, type Fixture } from '../../kit/fixture.ts'

const fixture = await openFixture()
const shop = await fixture.merchant()
/** Its clock runs by itself: number 21 answers later than any caller waits. */
const slow = await openFixture()
const slowShop = await slow.merchant()

/** The operators that call back; OperatorC is polled. */
const calling: readonly Provider[] = ['OperatorA', 'OperatorB', 'OperatorD']

const start = (scenario: string, parameter?: string) =>
  perOperator(async (operator) =>
    fixture.paid(shop, { payment_method: operator, customer_phone: customer(scenario, parameter) }),
  )
type Started = Awaited<ReturnType<typeof start>>
const slowPayments = perOperator(async (operator) =>
  slow.pay(slowShop, { payment_method: operator, customer_phone: customer('21') }),
)

const idOf = (payments: Started, operator: Provider) => payments[operator]?.['transaction_id']

async function become(payments: Started, status: string, on: Fixture = fixture): Promise<void> {
  const merchant = on === slow ? slowShop : shop
  await eventually(async () =>
    expect(await perOperator((operator) => on.statusOf(merchant, idOf(payments, operator)))).toEqual(
      each(status),
    ),
  )
}

/** The traces of a payment at the operator, in our books and in the events log. */
const traces = (payments: Started, on: Fixture = fixture) =>
  perOperator(async (operator) => {
    const id = idOf(payments, operator)
    const moved = await on.executionsOf(id)
    return { moved, credits: await on.creditsOf(id), events: await on.eventsOf(id) }
  })

/** Executed once at the operator; credited and emitted once by us. */
function once(amount = 5_000) {
  const moved = [{ kind: 'collect', count: 1, amount: String(amount), reversed: '0' }]
  const one = { moved: [expect.objectContaining(moved[0])], credits: [amount] }
  return each({ ...one, events: ['payment_pending', 'payment_received'] })
}

/** Ends the time in which an earlier call may still arrive; it runs by the machine's clock. */
async function lowerFences(payments: Started): Promise<void> {
  await fixture.database.owner.query(
    `UPDATE operator_request SET fence_until = now() - interval '1 s' WHERE transaction_id = ANY ($1)`,
    [Object.values(payments).map(({ transaction_id: id }) => id)],
  )
}

const callbacks = (payments: Started) =>
  perOperator((operator) => fixture.callbacksOf(idOf(payments, operator)), calling)

const kept = (payments: Started, count: number) =>
  eventually(async () => expect(await callbacks(payments)).toEqual(each(count, calling)))

describe('the answer is lost, wrong or late: paid once, as without the fault', () => {
  const cases = [
    ['20', 'the answer is lost'],
    ['22', '503 before the execution'],
    ['23', '500 after the execution'],
    ['24', 'carried out after the connection broke'],
    ['25', '429 with Retry-After'],
    ['26', 'the page of a gateway'],
  ] as const
  const all = new Map<string, Started>()
  const untouched = new Map<string, Awaited<ReturnType<typeof traces>>>()

  beforeAll(async () => {
    for (const [code] of cases) {
      // A success between them, so that no circuit opens.
      await start('00')
      all.set(code, await start(code))
    }
    for (const code of ['22', '26']) {
      const payments = all.get(code) ?? {}
      untouched.set(code, await traces(payments))
      await lowerFences(payments)
    }
    await fixture.advance(5 * second)
  })

  test.each(cases)('%s: %s', async (code) => {
    const payments = all.get(code) ?? {}
    const before = each({ moved: [], credits: [], events: ['payment_pending'] })
    expect(untouched.get(code) ?? before).toEqual(before)
    await become(payments, 'success')
    expect(await traces(payments)).toEqual(once())
  })
})

test('27 is never reachable: pending at first, failed OPERATOR_UNAVAILABLE after a minute', async () => {
  const payments = await start('27')
  await fixture.advance(minute + 6 * second)
  await become(payments, 'failed')
  for (const { transaction_id: id } of Object.values(payments)) {
    const record = await fixture.record(shop, id)
    expect(record['response_data'].failure.reason).toBe('OPERATOR_UNAVAILABLE')
    expect(await fixture.executionsOf(id)).toEqual([])
    expect(await fixture.eventsOf(id)).toEqual(['payment_pending', 'payment_failed'])
  }
})

describe('callbacks that are lost, repeated, stale, forged, early or false', () => {
  test.each([
    ['30', 'lost'],
    ['33', 'wrongly signed'],
  ])('%s %s: ignored; a query brings the truth', async (code) => {
    const payments = await start(code)
    await fixture.advance(2 * minute)
    await become(payments, 'success')
    expect(await traces(payments)).toEqual(once())
    expect(await callbacks(payments)).toEqual(each(0, calling))
  })

  test('31 repeated: kept once, credited once, emitted once', async () => {
    const payments = await start('31', '05')
    await become(await polled(payments), 'success')
    await kept(payments, 1)
    expect(await traces(payments)).toEqual(once())
  })

  test('32 a stale "pending" after the success leads to a query, and to nothing else', async () => {
    const payments = await start('32')
    await become(await polled(payments), 'success')
    await fixture.advance(second)
    await kept(payments, 2)
    await eventually(async () => {
      const { rows } = await fixture.database.owner.query(
        `SELECT DISTINCT next_check_at <= service_now() AS due FROM operator_request
         WHERE transaction_id = ANY ($1)`,
        [calling.map((operator) => idOf(payments, operator))],
      )
      expect(rows).toEqual([{ due: null }])
    })
    await become(payments, 'success')
    expect(await traces(payments)).toEqual(once())
  })

  test('34 before the answer: kept when /pay answers, and paid', async () => {
    const payments = await start('34')
    expect(await callbacks(payments)).toEqual(each(1, calling))
    await become(await polled(payments), 'success')
    expect(await traces(payments)).toEqual(once())
  })

  test('35 says failed where the operator says paid: paid, and the contradiction is logged', async () => {
    const warn = vi.spyOn(fixture.app.services.log, 'warn')
    const payments = await start('35')
    await become(await polled(payments), 'success')
    await kept(payments, 1)
    expect(await traces(payments)).toEqual(once())
    const contradicted = warn.mock.calls
      .filter(([, words]) => words === 'an operator contradicts its own callback')
      .map(([line]) => (line as { about?: string }).about)
    warn.mockRestore()
    for (const operator of calling)
      expect(contradicted).toContain(`transaction:${String(idOf(payments, operator))}`)
  })
})

describe('40 the operator takes a payment back', () => {
  test('reversed everywhere, and money already spent becomes a debt', async () => {
    const alarm = vi.spyOn(fixture.app.services.log, 'error')
    const spender = await fixture.merchant()
    const before = await fixture.available(shop)
    const spent = await fixture.paid(spender, { customer_phone: customer('40', '05') })
    const payments = await start('40', '05')
    await become(await polled(payments), 'success')
    await eventually(async () =>
      expect(await fixture.statusOf(spender, spent['transaction_id'])).toBe('success'),
    )
    expect(await fixture.available(shop)).toBe(before + 20_000)
    await reserveForApproval(fixture.database.owner, spender.merchantId, 4_000n)
    await fixture.advance(6 * second)
    await eventually(async () => {
      for (const operator of calling)
        expect(await fixture.statusOf(shop, idOf(payments, operator))).toBe('reversed')
      expect(await fixture.statusOf(spender, spent['transaction_id'])).toBe('reversed')
    })
    // An operator without callbacks is queried after a minute.
    expect(await fixture.statusOf(shop, idOf(payments, 'OperatorC'))).toBe('success')
    await fixture.advance(minute)
    await become(payments, 'reversed')

    expect([await fixture.available(shop), await fixture.available(spender)]).toEqual([before, 0])
    expect(alarm).toHaveBeenCalledWith(
      expect.objectContaining({ shortfall: 4_000n }),
      'a merchant owes money after a reversal by the operator',
    )
    alarm.mockRestore()
    for (const { transaction_id: id, reference } of Object.values(payments)) {
      expect((await fixture.check(reference)).body).toMatchObject({ state: 'failed', status: false })
      expect(await fixture.eventsOf(id)).toEqual(['payment_pending', 'payment_received', 'payment_reversed'])
      expect(await fixture.executionsOf(id)).toMatchObject([{ count: 1, amount: '5000', reversed: '5000' }])
    }
  })

  test('GraphQL lists it as REVERSED, and a subscriber gets the change', async () => {
    const { body } = await fixture.graphql(
      '{ transactions(first: 1, filter: { status: REVERSED }) { nodes { status responseData } } }',
      {},
      shop.token,
    )
    expect(body['data'].transactions.nodes).toMatchObject([
      { status: 'REVERSED', responseData: { state: 'failed' } },
    ])
    const client = createClient({
      url: `${fixture.url}/graphql`,
      headers: { Authorization: `Bearer ${shop.token}` },
      retryAttempts: 0,
    })
    const types: unknown[] = []
    const query = 'subscription { transactionChanged(after: "0") { type status } }'
    for await (const { data } of client.iterate<{ transactionChanged: object }>({ query })) {
      types.push(data?.transactionChanged)
      if (JSON.stringify(types).includes('REVERSED')) break
    }
    expect(types.at(-1)).toEqual({ type: 'PAYMENT_REVERSED', status: 'REVERSED' })
  })

  test('at once, before any query: credited and taken back', async () => {
    const payments = await start('40')
    await fixture.advance(2 * minute)
    await become(payments, 'reversed')
    for (const { transaction_id: id } of Object.values(payments))
      expect(await fixture.eventsOf(id)).toEqual(['payment_pending', 'payment_received', 'payment_reversed'])
  })
})

test('41 settles PP francs less: success with the paid amount', async () => {
  const payments = await start('41', '40')
  await become(await polled(payments), 'success')
  expect(await traces(payments)).toEqual(once(4_960))
  for (const { transaction_id: id } of Object.values(payments)) {
    const { amount, response_data: response } = await fixture.record(shop, id)
    expect({ amount, settled: response.settled_amount }).toEqual({ amount: 5_000, settled: 4_960 })
  }
})

test('41 is told as a payment of which a part is missing, never as complete', async () => {
  const payments = await start('41', '40')
  await become(await polled(payments), 'success')
  for (const { transaction_id: id, reference } of Object.values(payments)) {
    const { body } = await fixture.check(reference, '?lang=en')
    expect(body).toEqual({ state: 'success', status: true, message: expect.stringMatching(/missing|manque/) })
    const query = '{ paymentStatus(reference: "REFERENCE") { state partial } }'.replace(
      'REFERENCE',
      String(reference),
    )
    const answer = await fixture.graphql(query, {}, shop.token)
    expect(answer.body.data).toEqual({ paymentStatus: { state: 'SUCCESS', partial: true } })
    const told = await fixture.database.owner.query(
      `SELECT data->'amount' AS amount, data->'unpaid_amount' AS unpaid FROM event
       WHERE type = 'payment_received' AND data->>'transaction_id' = $1`,
      [String(id)],
    )
    expect(told.rows).toEqual([{ amount: 4_960, unpaid: 40 }])
  }
})

test('51 concerns money out alone: paid as by 00', async () => {
  const payments = await start('51')
  await become(await polled(payments), 'success')
  expect(await traces(payments)).toEqual(once())
})

test('21 is answered later than any caller waits: pending, then paid once', async () => {
  const answers = await slowPayments
  expect(await perOperator(async (operator) => answers[operator]?.status)).toEqual(each(202))
  const payments = await perOperator(
    async (operator) => answers[operator]?.body['data'] as Record<string, unknown>,
  )
  await become(payments, 'success', slow)
  expect(await traces(payments, slow)).toEqual(once())
})

test('every scenario of the table that does not end by its customer is played here', () => {
  const played = '20 21 22 23 24 25 26 27 30 31 32 33 34 35 40 41 51'
  const ofTable = scenarios.filter(({ fault }) => fault).map(({ code }) => code)
  expect(ofTable.join(' ')).toBe(played)
})

/** A status check by the payer makes the polled operator's query due. */
async function polled(payments: Started): Promise<Started> {
  await fixture.check(payments['OperatorC']?.['reference'])
  return payments
}
