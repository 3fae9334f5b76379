import { expect, test } from 'vitest'
import { fundMerchant } from '../../../src/resources/merchants/fund.ts'
import { reserveForApproval } from '../../kit/money-out.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, each, openFixture, perOperator } from '../../kit/fixture.ts'

const fixture = await openFixture()
const balanceOf = (token: string, query = '') => fixture.rest('GET', `/balance${query}`, { token })

test('a new merchant has 0', async () => {
  const { token } = await fixture.merchant()
  const { status, body } = await balanceOf(token)
  expect(status).toBe(200)
  expect(body['data']).toEqual({
    currency: 'XOF',
    balance: 0,
    available: 0,
    reserved: 0,
    as_of: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  })
})

test('the balance is available + reserved', async () => {
  const shop = await fixture.merchant()
  await fundMerchant(fixture.app.services, shop.merchantId, { amount: 10_000 })
  await reserveForApproval(fixture.database.owner, shop.merchantId, 4_000n)
  const { body } = await balanceOf(shop.token)
  expect(body['data']).toMatchObject({ balance: 10_000, available: 6_000, reserved: 4_000 })
})

test('a confirmed collection is credited to the balance of its merchant alone', async () => {
  const [shop, other] = [await fixture.merchant(), await fixture.merchant()]
  await fixture.paid(shop, { amount: 2_500, customer_phone: customer('00') })
  await eventually(async () => expect(await fixture.available(shop)).toBe(2_500))
  expect(await fixture.available(other)).toBe(0)
})

test('reading the balance records nothing', async () => {
  const { token } = await fixture.merchant()
  const before = await fixture.rowCounts()
  await balanceOf(token)
  expect(await fixture.rowCounts()).toEqual(before)
})

test('with payment_method the service asks the operator and records a balance_check of 0', async () => {
  const shop = await fixture.merchant()
  const floats = await perOperator(async (operator) => {
    const { status, body } = await balanceOf(shop.token, `?payment_method=${operator}`)
    return [status, Number.isSafeInteger(body['data']?.operator_balance), body['data']?.available]
  })
  expect(floats).toEqual(each([200, true, 0]))

  const { body } = await fixture.rest('GET', '/transactions?transaction_type=balance_check', shop)
  expect(body['data'].pagination.total).toBe(4)
  for (const row of body['data'].transactions)
    expect(row).toMatchObject({
      transaction_type: 'balance_check',
      amount: 0,
      status: 'success',
      customer_phone: '',
    })
})

test('a balance check posts nothing to the ledger', async () => {
  const shop = await fixture.merchant()
  const before = await fixture.rowCounts()
  await balanceOf(shop.token, '?payment_method=OperatorA')
  expect(await fixture.rowCounts()).toEqual({ ...before, transaction: before.transaction + 1 })
})

test('the reference of a balance check has no payment status', async () => {
  const shop = await fixture.merchant()
  await balanceOf(shop.token, '?payment_method=OperatorA')
  const { body } = await fixture.rest('GET', '/transactions?transaction_type=balance_check', shop)
  expect((await fixture.check(body['data'].transactions[0].reference)).status).toBe(404)
})

test('400 an unknown payment_method names the parameter and records nothing', async () => {
  const { token } = await fixture.merchant()
  const before = await fixture.rowCounts()
  for (const name of ['OperatorE', 'BankTransfer', '', 'operatora']) {
    const { status, body } = await balanceOf(token, `?payment_method=${name}`)
    expect(status).toBe(400)
    expect(body['errors'][0].field).toBe('payment_method')
  }
  expect(await fixture.rowCounts()).toEqual(before)
})

test('500 an unreachable operator: the check is recorded as failed', async () => {
  const shop = await fixture.merchant()
  await fixture.outage('OperatorC', 'refuse')
  const { status, body } = await balanceOf(shop.token, '?payment_method=OperatorC')
  await fixture.outage('OperatorC', 'none')
  expect(status).toBe(500)
  expect(body).toMatchObject({ success: false, message: expect.stringContaining('operator') })
  const list = await fixture.rest('GET', '/transactions', shop)
  expect(list.body['data'].transactions).toMatchObject([
    { transaction_type: 'balance_check', status: 'failed' },
  ])
})
