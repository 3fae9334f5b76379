import { describe, expect, test } from 'vitest'
import { openFixture } from '../../kit/fixture.ts'

// A field that is ignored for its spelling is named beside the field that is therefore missing.

const fixture = await openFixture()
const shop = await fixture.merchant()
const { token } = shop
const phone = '70110001'
const payment = { amount: 5_000, payment_method: 'OperatorA', customer_phone: phone }
const operators = 'must be one of OperatorA, OperatorB, OperatorC, OperatorD'

/** The body with a field under another name. */
function renamed(body: Record<string, unknown>, name: string, wrong: string): object {
  const { [name]: value, ...others } = body
  return { ...others, [wrong]: value }
}

const recipient = { name: 'Awa', account: phone, amount: 5_000, payment_method: 'OperatorA' }
const payout = { amount: 5_000, payment_method: 'OperatorA', account: phone, name: 'Awa' }
const link = { title: 'Thé', amount: 5_000 }
const batch = (row: object) => ({ name: 'Salaires', recipients: [recipient, row] })

describe('a missing field names the field that was meant', () => {
  test.each<[path: string, body: object, field: string, hint: string]>([
    ['/pay', renamed(payment, 'customer_phone', 'customerPhone'), 'customer_phone', 'not "customerPhone"'],
    [
      '/pay',
      renamed(payment, 'customer_phone', 'custommer_phone'),
      'customer_phone',
      'not "custommer_phone"',
    ],
    ['/pay', renamed(payment, 'amount', 'Amount'), 'amount', 'write amount, not "Amount"'],
    [
      '/deposit',
      renamed(payment, 'payment_method', 'paymentMethod'),
      'payment_method',
      'not "paymentMethod"',
    ],
    [
      '/payouts',
      renamed(payout, 'payment_method', 'paymentMethod'),
      'payment_method',
      'write payment_method',
    ],
    ['/payment-links', renamed(link, 'title', 'Title'), 'title', 'write title, not "Title"'],
    ['/bulk/batches', batch(renamed(recipient, 'amount', 'Amount')), 'recipients[1].amount', 'write amount'],
  ])('%s %j: %s', async (path, body, field, hint) => {
    const before = await fixture.rowCounts()
    const { status, body: answer } = await fixture.rest('POST', path, { token, body })
    expect(status).toBe(400)
    const problem = answer['errors'].find((each: { field: string }) => each.field === field)
    expect(problem?.message).toContain(hint)
    expect(answer['message']).toContain(hint)
    expect(await fixture.rowCounts()).toEqual(before)
  })
})

test.each([
  ['/pay', { ...payment, payment_method: 'operatora' }],
  ['/pay', { ...payment, payment_method: 'Operator A' }],
  ['/payouts', { ...payout, payment_method: 'operatora' }],
  ['/bulk/batches', batch({ ...recipient, payment_method: 'operatora' })],
])('%s %j names the operator that was meant', async (path, body) => {
  const { status, body: answer } = await fixture.rest('POST', path, { token, body })
  expect(status).toBe(400)
  expect(answer['message']).toContain(`${operators}: write OperatorA, not "`)
})

describe('no hint is given', () => {
  test('for a field that is there, beside one that is ignored', async () => {
    const { body } = await fixture.pay(shop, { ...payment, customer_phone: '1', customerPhone: phone })
    expect(body['errors']).toEqual([{ field: 'customer_phone', message: 'must be a mobile number in Mali' }])
  })

  test('for a field without a near one', async () => {
    const { body } = await fixture.rest('POST', '/pay', { token, body: renamed(payment, 'amount', 'sum') })
    expect(body['errors']).toEqual([{ field: 'amount', message: 'is required' }])
  })

  test('where the request is accepted: unknown fields are ignored', async () => {
    expect((await fixture.pay(shop, { ...payment, Amount: 1 })).status).toBe(202)
  })

  test.each(['Cash', 'Operator', 'OperatorZ'])('for %s, which means no operator', async (method) => {
    const { body } = await fixture.pay(shop, { ...payment, payment_method: method })
    expect(body['errors']).toEqual([{ field: 'payment_method', message: operators }])
  })
})
