import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { limits } from '../../../src/shared/limits.ts'
import { formatXof } from '../../../src/shared/money.ts'
import { type Provider, providers } from '../../../src/shared/providers.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { type Said, startAlteringProxy } from '../../kit/altered-amounts.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, minute, openFixture, second } from '../../kit/fixture.ts'
import { useBounds } from '../../kit/use-bounds.ts'

// The amounts that an operator reports have bounds: a proxy before the simulator writes other amounts into
// its answers, first answers and later ones. The wait for a deposit without a readable outcome is short.
useBounds(limits, { depositWaitMs: 300 })
const proxy = await startAlteringProxy()
const fixture = await openFixture({ OPERATORS_URL: proxy.url })
proxy.target = fixture.simulator.url
afterAll(() => proxy.close())

const alarms: [Record<string, unknown>, string][] = []
vi.spyOn(fixture.app.services.log, 'error').mockImplementation((...line: unknown[]) => {
  alarms.push(line as [Record<string, unknown>, string])
})
const alarmsOf = (words: string) => alarms.filter(([, message]) => message === words)

let shop: TestMerchant
beforeAll(async () => {
  shop = await fixture.merchant()
})
beforeEach(() => {
  alarms.length = 0
  proxy.says = null
})

/** The ledger entries of a payment. */
async function moved(id: unknown): Promise<string[]> {
  const { rows } = await fixture.database.owner.query<{ line: string }>(
    `SELECT format('%s %s > %s %s', step, regexp_replace(debit::text, '_operator_.', ''),
       regexp_replace(credit::text, '_operator_.', ''), amount) AS line
     FROM ledger_entry WHERE origin = 'transaction:' || $1 ORDER BY id`,
    [String(id)],
  )
  return rows.map(({ line }) => line)
}

async function exceptions(id: unknown) {
  const { rows } = await fixture.database.owner.query(
    `SELECT requested_amount::int AS asked, confirmed_amount::text AS said, state FROM settlement_exception
     WHERE transaction_id = $1`,
    [id],
  )
  return rows
}

/** Every read of money works, with any reported amount. */
async function readable(merchant: TestMerchant, reference: unknown): Promise<number> {
  const { token } = merchant
  const balance = await fixture.rest('GET', '/balance', { token })
  const list = await fixture.rest('GET', '/transactions', { token })
  const document =
    '{ balance { available reserved } transactions(first: 5) { nodes { amount settledAmount } } }'
  const graphql = await fixture.graphql(document, {}, token)
  const payer = await fixture.check(reference, `?merchant_id=${merchant.merchantId}`)
  expect([balance.status, list.status, graphql.body.errors, payer.status]).toEqual([200, 200, undefined, 200])
  return balance.body['data'].available as number
}

async function receipt(merchant: TestMerchant, reference: unknown, language: string): Promise<string> {
  const document = 'query ($reference: String!) { transaction(reference: $reference) { receiptUrl } }'
  const { body } = await fixture.graphql(document, { reference }, merchant.token)
  const answer = await fetch(`${body.data.transaction.receiptUrl}?lang=${language}`)
  return answer.text()
}

const start = (operator: Provider, merchant = shop, ...scenario: [string?, string?]) =>
  fixture.paid(merchant, {
    payment_method: operator,
    customer_phone: customer(scenario[0] ?? '00', scenario[1]),
  })

/** A collection that its operator reports with another amount, in every answer. */
async function collectReporting(operator: Provider, says: Said, merchant: TestMerchant) {
  proxy.says = says
  const payment = await start(operator, merchant)
  await fixture.advance(10 * second)
  return payment
}

describe.each(providers)('%s', (operator) => {
  test('reports more: the request is credited, the rest waits for a person, an alarm is raised', async () => {
    const merchant = await fixture.merchant()
    const payment = await collectReporting(operator, '500000.00', merchant)
    const id = payment['transaction_id']
    await eventually(async () => expect(await fixture.statusOf(merchant, id)).toBe('success'))
    expect(await moved(id)).toEqual([
      'credit clearing > available 5000',
      'excess clearing > unallocated 495000',
    ])
    expect(await exceptions(id)).toEqual([{ asked: 5_000, said: '500000', state: 'open' }])
    expect(await readable(merchant, payment['reference'])).toBe(5_000)
    expect(alarmsOf('alarm: an operator says that more was paid than asked')).toHaveLength(1)
    // The excess is not available for a payout by another operator.
    const payout = { amount: 100_000, payment_method: 'OperatorB', destination_phone: '70000001' }
    expect((await fixture.rest('POST', '/payouts', { token: merchant.token, body: payout })).status).toBe(400)
  })

  test('reports less: the receipt says in both languages how much is missing', async () => {
    const merchant = await fixture.merchant()
    const payment = await collectReporting(operator, '4200', merchant)
    const id = payment['transaction_id']
    await eventually(async () => expect(await fixture.statusOf(merchant, id)).toBe('success'))
    const french = await receipt(merchant, payment['reference'], 'fr')
    expect(french).toContain('<h1>Paiement reçu en partie</h1>')
    expect(french).toContain(`Il manque ${formatXof(800)}.`)
    const english = await receipt(merchant, payment['reference'], 'en')
    expect(english).toContain('<h1>Payment received in part</h1>')
    expect(english).toContain(`${formatXof(800)} is missing.`)
    for (const page of [french, english]) expect(page).not.toMatch(/✓|effectué|complete/)
  })

  test('reports an impossible amount: nothing is credited, each query raises an alarm', async () => {
    const merchant = await fixture.merchant()
    const payments = []
    for (const says of ['999999999999999999', '10000000001', '0', '-5000', '5000.50', 1e18, '5e3', '']) {
      alarms.length = 0
      const payment = await collectReporting(operator, says, merchant)
      const message = 'alarm: an operator reports an amount that cannot be read'
      await eventually(() =>
        expect({ says, alarms: alarmsOf(message).length > 0 }).toEqual({ says, alarms: true }),
      )
      expect(await readable(merchant, payment['reference'])).toBe(0)
      expect(await moved(payment['transaction_id'])).toEqual([])
      expect(await fixture.statusOf(merchant, payment['transaction_id'])).toBe('pending')
      payments.push(payment)
    }
    proxy.says = null
    await fixture.advance(10 * minute)
    await eventually(async () => expect(await fixture.available(merchant)).toBe(payments.length * 5_000))
  })

  test('takes back the amount that it reported as more: nothing is left over of it', async () => {
    const merchant = await fixture.merchant()
    proxy.says = '7000'
    const { transaction_id: id } = await start(operator, merchant, '40', '60')
    await eventually(async () => expect(await fixture.statusOf(merchant, id)).toBe('success'))
    expect(await moved(id)).toHaveLength(2)
    // The amount it reports with the reversal is impossible: nothing moves before it can be read.
    proxy.says = '999999999999999999'
    await fixture.advance(2 * minute)
    const unreadable = 'alarm: an operator reports an amount that cannot be read'
    await eventually(() => expect(alarmsOf(unreadable)).not.toEqual([]))
    expect(await fixture.statusOf(merchant, id)).toBe('success')
    proxy.says = '7000'
    await fixture.advance(10 * minute)
    await eventually(async () => expect(await fixture.statusOf(merchant, id)).toBe('reversed'))
    expect((await moved(id)).slice(2)).toEqual([
      'reverse available > clearing 5000',
      'excess_return unallocated > clearing 2000',
    ])
    expect(await exceptions(id)).toEqual([{ asked: 5_000, said: '7000', state: 'returned' }])
    expect(await fixture.available(merchant)).toBe(0)
  })

  test('reports any amount for a deposit: at most the reserved amount leaves; 0 is no outcome', async () => {
    const merchant = await fixture.merchant()
    await fixture.fund(merchant, 10_000)
    const deposit = () => fixture.deposit(merchant, { payment_method: operator })
    proxy.says = '500000'
    const more = await deposit()
    const { transaction_id: paid } = more.body.data
    await fixture.advance(10 * second)
    await eventually(async () => expect(await fixture.statusOf(merchant, paid)).toBe('success'))
    const outward = ['reserve available > reserved 1000', 'post reserved > clearing 1000']
    expect(await moved(paid)).toEqual(outward)
    expect(alarmsOf('alarm: an operator paid out too much')).toHaveLength(1)
    const unclear = []
    for (const says of ['0', '-1000', '999999999999999999']) {
      proxy.says = says
      const { status, body } = await deposit()
      expect({ says, status, stands: body.data.status }).toEqual({ says, status: 202, stands: 'processing' })
      expect(await moved(body.data.transaction_id)).toEqual(outward.slice(0, 1))
      unclear.push(body.data.transaction_id)
    }
    proxy.says = null
    await fixture.advance(10 * minute)
    for (const id of unclear) {
      await eventually(async () => expect(await fixture.statusOf(merchant, id)).toBe('success'))
      expect(await moved(id)).toEqual(outward)
    }
    expect(await fixture.available(merchant)).toBe(6_000)
  })
})

test('the same absurd amount ten times: later collections are paid, and the balance answers', async () => {
  const merchant = await fixture.merchant()
  proxy.says = '999999999999999999'
  const payments = await Promise.all(
    providers.flatMap((operator) => [1, 2, 3].map(() => start(operator, merchant))),
  )
  await fixture.advance(10 * second)
  for (const { reference } of payments) expect(await readable(merchant, reference)).toBe(0)
  proxy.says = null
  await fixture.advance(10 * minute)
  await eventually(async () => expect(await fixture.available(merchant)).toBe(12 * 5_000))
})
