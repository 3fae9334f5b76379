import { beforeAll, describe, expect, test } from 'vitest'
import { fundMerchant } from '../../../src/resources/merchants/fund.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, hour, openFixture } from '../../kit/fixture.ts'

const fixture = await openFixture()
let shop: TestMerchant
/** Moments between the changes of the balance. */
const between: Date[] = []
let paid: number

const now = () => fixture.app.services.clock.now()
const hasAvailable = (amount: number) =>
  eventually(async () => expect(await fixture.available(shop)).toBe(amount))
beforeAll(async () => {
  shop = await fixture.merchant()
  await fundMerchant(fixture.app.services, shop.merchantId, { amount: 10_000 })
  await fixture.advance(hour)
  between.push(now())
  await fixture.advance(hour)
  const { transaction_id: id } = await fixture.paid(shop, { amount: 2_500, customer_phone: customer('00') })
  paid = id as number
  await hasAvailable(12_500)
  await fixture.advance(hour)
  between.push(now())
})

const ask = async (document: string, variables: object = {}, merchant = shop) =>
  (await fixture.graphql(document, variables, merchant.token)).body
const amounts = '{ balance available reserved receivable }'
const lineFields = 'entry { step debit credit amount } availableChange reservedChange transactionId payoutId'

describe('statement', () => {
  const statement = `query ($from: DateTime!, $to: DateTime, $first: Int, $after: String) {
    statement(from: $from, to: $to) { from to currency opening ${amounts} closing ${amounts} totalIn totalOut
      lines(first: $first, after: $after) { nodes { ${lineFields} } pageInfo { hasNextPage endCursor } } } }`

  test('has opening, every change, closing', async () => {
    const [from, to] = between
    const { data } = await ask(statement, { from, to })
    const opening = { balance: 10_000, available: 10_000, reserved: 0, receivable: 0 }
    expect(data.statement).toEqual({
      from: from?.toISOString(),
      to: to?.toISOString(),
      currency: 'XOF',
      opening,
      closing: { ...opening, balance: 12_500, available: 12_500 },
      totalIn: 2_500,
      totalOut: 0,
      lines: {
        nodes: [
          {
            entry: { step: 'CREDIT', debit: 'CLEARING_OPERATOR_A', credit: 'AVAILABLE', amount: 2_500 },
            availableChange: 2_500,
            reservedChange: 0,
            transactionId: paid,
            payoutId: null,
          },
        ],
        pageInfo: { hasNextPage: false, endCursor: expect.any(String) },
      },
    })
  })

  test('without an end it goes to now; its lines come by pages', async () => {
    const from = '2020-01-01T00:00:00Z'
    const first = (await ask(statement, { from, first: 1 })).data.statement
    expect(first.closing.available).toBe(12_500)
    expect(new Date(first.to).getTime()).toBeGreaterThanOrEqual(between[1]?.getTime() ?? Infinity)
    expect(first.lines.pageInfo.hasNextPage).toBe(true)
    const after = first.lines.pageInfo.endCursor
    const second = (await ask(statement, { from, first: 1, after })).data.statement
    expect(second.lines.pageInfo.hasNextPage).toBe(false)
    const steps = [first, second].flatMap(({ lines }) => lines.nodes).map(({ entry }) => entry.step)
    expect(steps).toEqual(['FUND', 'CREDIT'])
  })

  test('of a time without a change opens as it closes; another merchant has its own', async () => {
    const [from, to] = between
    const later = new Date(now().getTime() + hour)
    const { opening, closing, lines } = (await ask(statement, { from: later, to: later })).data.statement
    expect([opening, lines.nodes]).toEqual([closing, []])
    const other = (await ask(statement, { from, to }, await fixture.merchant())).data.statement
    expect([other.closing.balance, other.lines.nodes]).toEqual([0, []])
  })

  test('to a date it ends with that day, in UTC or in the zone of the date', async () => {
    const dateOf = (at = now()) => at.toISOString().slice(0, 10)
    const from = dateOf(between[0])
    const { closing, to } = (await ask(statement, { from, to: dateOf() })).data.statement
    const midnight = Date.parse(dateOf()) + 24 * hour
    expect([closing.available, to]).toEqual([12_500, new Date(midnight).toISOString()])
    const west = (await ask(statement, { from, to: `${dateOf()}-05:00` })).data.statement
    expect(west.to).toBe(new Date(midnight + 5 * hour).toISOString())
  })

  test.each<[string, object]>([
    ['to', { from: '2026-02-01T00:00:00Z', to: '2026-01-31T00:00:00Z' }],
    ['from', { from: '9999-01-01T00:00:00Z' }],
    ['first', { from: '2026-02-01T00:00:00Z', first: 101 }],
    ['after', { from: '2026-02-01T00:00:00Z', after: 'mine' }],
  ])('is refused with the name of the field: %s', async (field, variables) => {
    const { errors } = await ask(statement, variables)
    expect(errors[0].extensions).toMatchObject({ code: 'INVALID_INPUT', problems: [{ field }] })
  })

  test('accepts any date', async () => {
    const all = { from: '0001-01-01T00:00:00Z', to: '9999-12-31' }
    const { closing, opening } = (await ask(statement, all)).data.statement
    expect([opening.balance, closing.balance]).toEqual([0, 12_500])
  })
})

describe('balance(at:)', () => {
  const balanceAt =
    'query ($at: DateTime, $of: PaymentMethod) { balance(at: $at, paymentMethod: $of) { balance asOf } }'

  test('the balance of a past moment is exact; of a future one, it is the current balance', async () => {
    const asked = async (at: Date) => (await ask(balanceAt, { at })).data.balance
    const [before, after] = between
    expect(await asked(new Date(0))).toMatchObject({ balance: 0 })
    expect(await asked(before ?? now())).toEqual({ balance: 10_000, asOf: before?.toISOString() })
    expect(await asked(after ?? now())).toMatchObject({ balance: 12_500 })
    const future = new Date(now().getTime() + 24 * hour)
    const { balance, asOf } = await asked(future)
    expect(balance).toBe(12_500)
    expect(new Date(asOf).getTime()).toBeLessThan(future.getTime())
  })

  test('the balance of a past moment with an operator is refused: that history is not known', async () => {
    const { errors } = await ask(balanceAt, { at: now(), of: 'OperatorA' })
    expect(errors[0].extensions).toMatchObject({ code: 'INVALID_INPUT', problems: [{ field: 'at' }] })
  })
})

test('a transaction shows its ledger entries', async () => {
  const document = `query ($id: SafeInt) { transaction(databaseId: $id) {
    ledgerEntries { databaseId step debit credit amount createdAt } } }`
  const { data } = await ask(document, { id: paid })
  expect(data.transaction.ledgerEntries).toEqual([
    {
      databaseId: expect.any(Number),
      step: 'CREDIT',
      debit: 'CLEARING_OPERATOR_A',
      credit: 'AVAILABLE',
      amount: 2_500,
      createdAt: expect.stringMatching(/Z$/),
    },
  ])
})
