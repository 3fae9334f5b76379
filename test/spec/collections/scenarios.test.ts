import { describe, expect, onTestFinished, test } from 'vitest'
import { limits } from '../../../src/shared/limits.ts'
import type { Provider } from '../../../src/shared/providers.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, each, hour, minute, openFixture, perOperator, second } from '../../kit/fixture.ts'
import { randomFrom } from '../../kit/random.ts'
import { seed } from '../../kit/seeds.ts'
import { useBounds } from '../../kit/use-bounds.ts'

const fixture = await openFixture()
const shop = await fixture.merchant()
/** Operators of the push-prompt protocol; OperatorB's customer pays on a hosted page. */
const prompting: readonly Provider[] = ['OperatorA', 'OperatorC', 'OperatorD']

const start = (scenario: string, parameter?: string, among?: readonly Provider[]) =>
  perOperator(
    async (operator) =>
      fixture.paid(shop, { payment_method: operator, customer_phone: customer(scenario, parameter) }),
    among,
  )

type Started = Awaited<ReturnType<typeof start>>
const operatorsOf = (payments: Started) => Object.keys(payments) as Provider[]

/** The status of each payment, for `toEqual(each(…))`. */
const statuses = (payments: Started) =>
  perOperator(
    (operator) => fixture.statusOf(shop, payments[operator]?.['transaction_id']),
    operatorsOf(payments),
  )

/** Waits until all have this status; a status check makes the query of polled operators due. */
async function become(payments: Started, status: string): Promise<void> {
  await eventually(async () => {
    await perOperator((operator) => fixture.check(payments[operator]?.['reference']), operatorsOf(payments))
    expect(await statuses(payments)).toEqual(each(status, operatorsOf(payments)))
  })
}

const reasons = (payments: Started) =>
  perOperator(async (operator) => {
    const record = await fixture.record(shop, payments[operator]?.['transaction_id'])
    return record['response_data'].failure?.reason as string
  }, operatorsOf(payments))

describe('the customer confirms', () => {
  test('00 confirms at once: success, credited, payment_received', async () => {
    const before = await fixture.available(shop)
    const payments = await start('00')
    await become(payments, 'success')
    for (const { transaction_id: id } of Object.values(payments)) {
      expect(await fixture.creditsOf(id)).toEqual([5_000])
      expect(await fixture.eventsOf(id)).toEqual(['payment_pending', 'payment_received'])
    }
    expect(await fixture.available(shop)).toBe(before + 20_000)
  })

  test('00 with PP confirms after PP s, and not before', async () => {
    const payments = await start('00', '40')
    await fixture.advance(30 * second)
    await perOperator((operator) => fixture.check(payments[operator]?.['reference']))
    expect(await statuses(payments)).toEqual(each('pending'))
    await fixture.advance(10 * second)
    await become(payments, 'success')
  })

  test('any other number confirms after 3 s', async () => {
    const random = randomFrom(seed)
    const payments = await perOperator((operator, index = Math.floor(random() * 1e6)) =>
      fixture.paid(shop, {
        payment_method: operator,
        customer_phone: `+22376${String(index).padStart(6, '0')}`,
      }),
    )
    expect(await statuses(payments)).toEqual(each('pending'))
    await fixture.advance(3 * second)
    await become(payments, 'success')
  })

  test('09 a person decides: pending until then', async () => {
    const payments = await start('09')
    await fixture.advance(minute)
    await perOperator((operator) => fixture.check(payments[operator]?.['reference']))
    expect(await statuses(payments)).toEqual(each('pending'))
    for (const { transaction_id: id } of Object.values(payments)) await fixture.answer(id, 'confirm')
    await become(payments, 'success')
  })

  test('payment_received carries the transaction, its reference and its amount', async () => {
    const { OperatorA: payment = {} } = await start('00', '00', ['OperatorA'])
    await become({ OperatorA: payment }, 'success')
    const { rows } = await fixture.database.owner.query(
      `SELECT merchant_id, data FROM event WHERE type = 'payment_received' AND data->>'transaction_id' = $1`,
      [String(payment['transaction_id'])],
    )
    expect(rows).toMatchObject([
      {
        merchant_id: shop.merchantId,
        data: {
          transaction_id: payment['transaction_id'],
          reference: payment['reference'],
          amount: 5_000,
          currency: 'XOF',
          payment_method: 'OperatorA',
          customer_phone: expect.stringMatching(/^\+223/),
          late: false,
        },
      },
    ])
  })
})

describe('the customer or the operator refuses', () => {
  test.each([
    ['01', 'declines', 'PAYER_DECLINED'],
    ['02', 'insufficient funds', 'PAYER_INSUFFICIENT_FUNDS'],
    ['04', 'limit reached', 'PAYER_LIMIT_REACHED'],
    ['06', 'wrong PIN', 'PAYER_AUTH_FAILED'],
    ['07', 'other session open', 'PAYER_BUSY'],
  ])('%s %s: accepted, then failed for that reason, nothing credited', async (scenario, _what, reason) => {
    const before = await fixture.available(shop)
    const payments = await start(scenario)
    await become(payments, 'failed')
    expect(await reasons(payments)).toEqual(each(reason))
    for (const { transaction_id: id } of Object.values(payments)) {
      expect(await fixture.eventsOf(id)).toEqual(['payment_pending', 'payment_failed'])
      expect(await fixture.creditsOf(id)).toEqual([])
    }
    expect(await fixture.available(shop)).toBe(before)
  })

  test.each([
    ['03', 'no such wallet', 'PAYER_NOT_FOUND'],
    ['05', 'blocked', 'PAYER_NOT_ALLOWED'],
  ])('%s %s: 400 where the first answer refuses, recorded as failed', async (scenario, _what, reason) => {
    const answers = await perOperator(async (operator) => {
      const { status, body } = await fixture.pay(shop, {
        payment_method: operator,
        customer_phone: customer(scenario),
      })
      const { transaction_id: id, status: initial } = body['data']
      const { status: stands, response_data: response } = await fixture.record(shop, id)
      return [status, initial, stands, response.failure?.reason]
    }, prompting)
    expect(answers).toEqual(each([400, 'failed', 'failed', reason], prompting))
  })

  test.each(['03', '05'])(
    '%s on a hosted page: the page is made, and its payment fails',
    async (scenario) => {
      const payments = await start(scenario, '00', ['OperatorB'])
      await become(payments, 'failed')
      expect((await reasons(payments))['OperatorB']).toMatch(/^PAYER_/)
    },
  )

  test('01 with PP declines after PP s, and not before', async () => {
    const payments = await start('01', '40')
    await fixture.advance(30 * second)
    await perOperator((operator) => fixture.check(payments[operator]?.['reference']))
    expect(await statuses(payments)).toEqual(each('pending'))
    await fixture.advance(10 * second)
    await become(payments, 'failed')
  })
})

describe('the customer does not answer', () => {
  test('10 the prompt expires after 5 min: failed', async () => {
    const payments = await start('10')
    await fixture.advance(4 * minute)
    await perOperator((operator) => fixture.check(payments[operator]?.['reference']))
    expect(await statuses(payments)).toEqual(each('pending'))
    await fixture.advance(minute + second)
    await become(payments, 'failed')
    expect(await reasons(payments)).toEqual(each('PAYER_TIMEOUT'))
  })

  test('11 expires at 24 h, after one more query to the operator, and not before', async () => {
    const payments = await start('11')
    await fixture.advance(24 * hour - 10 * minute)
    await perOperator((operator) => fixture.check(payments[operator]?.['reference']))
    expect(await statuses(payments)).toEqual(each('pending'))

    const due = fixture.app.services.clock.now().getTime() + 10 * minute
    await fixture.advance(10 * minute + second)
    await eventually(async () => expect(await statuses(payments)).toEqual(each('expired')))
    const asked = await perOperator(async (operator) => {
      const seen = await fixture.seen(operator)
      return seen.some(({ method, at }) => method === 'GET' && Date.parse(at) >= due)
    })
    expect(asked).toEqual(each(true))

    for (const { transaction_id: id, reference } of Object.values(payments)) {
      expect((await fixture.check(reference)).body).toMatchObject({ state: 'failed', status: false })
      expect(await fixture.eventsOf(id)).toEqual(['payment_pending', 'payment_expired'])
      expect(await fixture.creditsOf(id)).toEqual([])
    }
  })

  test('11 while the operator is out of reach is queried, and nothing expires or fails', async () => {
    const modes = { OperatorA: 'refuse', OperatorC: 'hang', OperatorD: '5xx' } as const
    // Payments that are paid meanwhile, and payments without any answer.
    const [paid, unanswered] = [await start('12', '23', prompting), await start('11', '00', prompting)]
    const all = [paid, unanswered].flatMap((payments) => Object.values(payments))
    const due = fixture.app.services.clock.now().getTime() + 25 * hour
    useBounds(limits, { operatorQueryDeadlineMs: 1_000 }, onTestFinished)
    await perOperator(
      (operator) => fixture.outage(operator, modes[operator as keyof typeof modes]),
      prompting,
    )
    try {
      await fixture.advance(25 * hour)
      // Queried after its expiry, without a usable answer.
      const asked = () =>
        perOperator(async (operator) => {
          const seen = (await fixture.seen(operator)).filter(({ at }) => Date.parse(at) >= due)
          return seen.length > 0 && seen.every(({ status }) => status === null || status === 503)
        }, prompting)
      await eventually(async () => expect(await asked()).toEqual(each(true, prompting)))
      await Promise.all(
        all.map(({ reference }) =>
          eventually(async () => expect((await fixture.check(reference)).status).toBe(500)),
        ),
      )
      for (const { transaction_id: id } of all)
        expect(await fixture.eventsOf(id)).toEqual(['payment_pending'])
    } finally {
      await perOperator((operator) => fixture.outage(operator, 'none'), prompting)
    }
    await fixture.advance(2 * minute)
    await become(unanswered, 'expired')
    await become(paid, 'success')
  })
})

describe('late money counts', () => {
  test('12 confirms after 25 h: expired, then success, late, credited once', async () => {
    const before = await fixture.available(shop)
    const payments = await start('12')
    await fixture.advance(24 * hour + minute)
    await become(payments, 'expired')
    expect(await fixture.available(shop)).toBe(before)

    await fixture.advance(hour)
    // A callback, or the hourly query, brings it without a status check by the payer.
    await eventually(async () => expect(await statuses(payments)).toEqual(each('success')))
    await fixture.advance(2 * hour)
    for (const { transaction_id: id, reference } of Object.values(payments)) {
      expect((await fixture.record(shop, id))['response_data']).toMatchObject({
        state: 'success',
        late: true,
      })
      expect(await fixture.creditsOf(id)).toEqual([5_000])
      expect(await fixture.eventsOf(id)).toEqual(['payment_pending', 'payment_expired', 'payment_received'])
      expect((await fixture.check(reference)).body).toMatchObject({ state: 'success', status: true })
    }
    const { rows } = await fixture.database.owner.query(
      `SELECT DISTINCT data->'late' AS late FROM event
       WHERE type = 'payment_received' AND data->>'transaction_id' = ANY ($1)`,
      [Object.values(payments).map(({ transaction_id: id }) => String(id))],
    )
    expect(rows).toEqual([{ late: true }])
    expect(await fixture.available(shop)).toBe(before + 20_000)
  })

  test('12 with PP = 23: confirmed in time, and not late', async () => {
    const payments = await start('12', '23')
    await fixture.advance(23 * hour + minute)
    await become(payments, 'success')
    for (const { transaction_id: id } of Object.values(payments)) {
      expect((await fixture.record(shop, id))['response_data'].late).toBe(false)
      expect(await fixture.creditsOf(id)).toEqual([5_000])
    }
  })
})

test('the operators’ own books add up, and hold every credited franc', async () => {
  const response = await fetch(`${fixture.simulator.url}/_sim/invariants`, {
    headers: { 'x-control-token': fixture.controlToken },
  })
  expect(await response.json()).toMatchObject({ ok: true, problems: [] })
})
