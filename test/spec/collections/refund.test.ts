import { randomUUID } from 'node:crypto'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { providers } from '../../../src/shared/providers.ts'
import { entriesOf } from '../../kit/money-out.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, each, openFixture, perOperator } from '../../kit/fixture.ts'

// GraphQL `refundTransaction`. The wait for the outcome is shorter where the outcome does not come.
const wait = vi.hoisted(() => ({ ms: null as number | null }))
vi.mock(import('../../../src/shared/limits.ts'), async (original) => {
  const { limits: real } = await original()
  const waits = {
    get depositWaitMs() {
      return wait.ms ?? real.depositWaitMs
    },
  }
  return { limits: Object.defineProperties({ ...real }, Object.getOwnPropertyDescriptors(waits)) }
})
vi.mock(import('../../../src/requests/schedule.ts'), async (original) =>
  (await import('../../kit/quick-polls.ts')).quickPolls(await original()),
)

const fixture = await openFixture()

/** A paid payment, of a customer who pays at once unless `body` says otherwise. @returns its id */
async function paidOff(shop: TestMerchant, body: object = {}): Promise<number> {
  const { transaction_id: id } = await fixture.paid(shop, { customer_phone: customer('00'), ...body })
  await eventually(async () => expect(await fixture.statusOf(shop, id)).toBe('success'))
  return id as number
}

const document = `mutation ($id: ID!, $amount: Amount, $reason: String, $reference: String) {
  refundTransaction(id: $id, amount: $amount, reason: $reason, reference: $reference) { __typename
    ... on PaymentInitiation { databaseId status amount reference paymentMethod
      transaction { customerPhone requestData refundOf { databaseId } } }
    ... on PaymentRefusedError { initiation { databaseId status } }
    ... on InvalidInputError { problems { field message } }
    ... on Refusal { code message } } }`

async function refund(shop: TestMerchant, id: unknown, more: object = {}) {
  const { body } = await fixture.graphql(document, { id: String(id), ...more }, shop.token)
  expect(body.errors).toBeUndefined()
  return body.data.refundTransaction
}

/** The refunds of a payment, as its merchant reads them. */
async function given(shop: TestMerchant, id: number) {
  const { body } = await fixture.graphql(
    `query ($id: SafeInt!) { transaction(databaseId: $id) {
      status refundedAmount refunds { databaseId status amount } } }`,
    { id },
    shop.token,
  )
  expect(body.errors).toBeUndefined()
  return body.data.transaction
}

test('of the whole payment goes to the payer by the same operator; the payment is reversed', async () => {
  const results = await perOperator(async (operator) => {
    const shop = await fixture.merchant()
    const phone = customer('00')
    const id = await paidOff(shop, { payment_method: operator, customer_phone: phone, amount: 3_000 })
    const answer = await refund(shop, id, { reason: 'Article rendu' })
    expect(answer).toMatchObject({
      __typename: 'PaymentInitiation',
      status: 'SUCCESS',
      amount: 3_000,
      paymentMethod: operator,
      reference: expect.stringMatching(/^rf_[0-9a-f]{32}$/),
      transaction: {
        customerPhone: phone,
        refundOf: { databaseId: id },
        requestData: { reason: 'Article rendu', refund_of: id },
      },
    })
    expect(await fixture.executionsOf(answer.databaseId)).toMatchObject([
      { operator, kind: 'disburse', count: 1, amount: '3000' },
    ])
    expect(await given(shop, id)).toMatchObject({ status: 'REVERSED', refundedAmount: 3_000 })
    expect(await fixture.available(shop)).toBe(0)
    return [await fixture.eventsOf(id), await fixture.eventsOf(answer.databaseId)]
  })
  const events = ['payment_pending', 'payment_received', 'payment_reversed']
  expect(results).toEqual(each([events, ['deposit_processing', 'deposit_completed']]))
})

test('in parts is never more than was paid, and the last part makes the payment reversed', async () => {
  const shop = await fixture.merchant()
  const id = await paidOff(shop, { amount: 5_000 })
  await fixture.fund(shop, 100_000)
  const first = await refund(shop, id, { amount: 2_000 })
  expect(first.status).toBe('SUCCESS')
  expect(await given(shop, id)).toMatchObject({ status: 'SUCCESS', refundedAmount: 2_000 })
  expect(await refund(shop, id, { amount: 3_001 })).toMatchObject({ code: 'REFUND_TOO_LARGE' })
  const last = await refund(shop, id)
  expect(last).toMatchObject({ status: 'SUCCESS', amount: 3_000 })
  expect(await given(shop, id)).toEqual({
    status: 'REVERSED',
    refundedAmount: 5_000,
    refunds: [
      { databaseId: last.databaseId, status: 'SUCCESS', amount: 3_000 },
      { databaseId: first.databaseId, status: 'SUCCESS', amount: 2_000 },
    ],
  })
  expect(await refund(shop, id)).toMatchObject({ code: 'NOT_REFUNDABLE' })
  const { rows } = await fixture.database.owner.query(
    `SELECT data->'refunded' AS refunded, data->'amount' AS amount FROM event
     WHERE type = 'payment_reversed' AND data->>'transaction_id' = $1`,
    [String(id)],
  )
  expect(rows).toEqual([{ refunded: true, amount: 5_000 }])
})

test('ten at once of 60 % each: one is made', async () => {
  const shop = await fixture.merchant()
  const id = await paidOff(shop, { amount: 10_000 })
  await fixture.fund(shop, 1_000_000)
  const answers = await Promise.all(Array.from({ length: 10 }, () => refund(shop, id, { amount: 6_000 })))
  const types = answers.map(({ __typename: type }) => type)
  expect(types.filter((type) => type === 'PaymentInitiation')).toHaveLength(1)
  expect(types.filter((type) => type === 'RefundTooLargeError')).toHaveLength(9)
  expect(await given(shop, id)).toMatchObject({ status: 'SUCCESS', refundedAmount: 6_000 })
})

test('that fails changes nothing, and can be tried again; a running one counts', async () => {
  const shop = await fixture.merchant()
  // A customer that answers only when the test says so.
  const id = (await fixture.paid(shop, { amount: 5_000 }))['transaction_id'] as number
  await fixture.answer(id, 'confirm')
  await eventually(async () => expect(await fixture.statusOf(shop, id)).toBe('success'))
  wait.ms = 200
  onTestFinished(() => {
    wait.ms = null
  })
  const first = await refund(shop, id)
  expect(first.status).toBe('PROCESSING')
  await fixture.fund(shop, 5_000)
  expect(await refund(shop, id)).toMatchObject({ code: 'REFUND_TOO_LARGE' })
  await fixture.answer(first.databaseId, 'decline')
  await eventually(async () => expect(await fixture.statusOf(shop, first.databaseId)).toBe('failed'))
  expect(await given(shop, id)).toMatchObject({ status: 'SUCCESS', refundedAmount: 0 })
  expect(await fixture.available(shop)).toBe(10_000)
  expect(await entriesOf(fixture.database.owner, `transaction:${first.databaseId}`)).toHaveLength(2)
  const second = await refund(shop, id)
  await fixture.answer(second.databaseId, 'confirm')
  await eventually(async () => expect(await fixture.statusOf(shop, id)).toBe('reversed'))
  expect(await fixture.available(shop)).toBe(5_000)
})

test('goes to the payer that the operator named, where it is another number', async () => {
  const shop = await fixture.merchant()
  const id = await paidOff(shop, { amount: 2_000, payment_method: 'OperatorD' })
  await fixture.database.owner.query(
    `UPDATE operator_request SET evidence = evidence || '{"counterparty": "22370000055"}'
     WHERE transaction_id = $1`,
    [id],
  )
  const answer = await refund(shop, id)
  expect(answer.transaction.customerPhone).toBe('+22370000055')
})

describe('is refused', () => {
  test('below 1,000, unless it is all that is left', async () => {
    const shop = await fixture.merchant()
    const [small, large] = [await paidOff(shop, { amount: 500 }), await paidOff(shop, { amount: 1_500 })]
    expect(await refund(shop, large, { amount: 999 })).toMatchObject({
      code: 'INVALID_INPUT',
      problems: [{ field: 'amount' }],
    })
    expect(await refund(shop, small)).toMatchObject({ status: 'SUCCESS', amount: 500 })
    expect(await refund(shop, large, { amount: 1_000 })).toMatchObject({ status: 'SUCCESS' })
    expect(await refund(shop, large, { amount: 500 })).toMatchObject({ status: 'SUCCESS', amount: 500 })
  })

  test("of an unpaid payment, of a deposit, or of another merchant's payment", async () => {
    const [shop, neighbour] = [await fixture.merchant(), await fixture.merchant()]
    await fixture.fund(shop, 10_000)
    const { transaction_id: pending } = await fixture.paid(shop)
    const { body } = await fixture.deposit(shop, { payment_method: 'OperatorD' })
    const foreign = await paidOff(neighbour)
    const before = await fixture.rowCounts()
    const answers = []
    for (const id of [pending, body.data.transaction_id, foreign, 999_999_999, 'rubbish'])
      answers.push((await refund(shop, id)).code)
    expect(answers).toEqual(['NOT_REFUNDABLE', 'NOT_REFUNDABLE', 'NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND'])
    expect(await fixture.rowCounts()).toEqual(before)
  })

  test('that the balance does not cover, or with a used reference', async () => {
    const shop = await fixture.merchant()
    const reference = randomUUID()
    const id = await paidOff(shop, { amount: 5_000, reference })
    expect(await refund(shop, id, { reference })).toMatchObject({ code: 'DUPLICATE_REFERENCE' })
    await fixture.deposit(shop, { amount: 1_000, payment_method: 'OperatorD' })
    expect(await refund(shop, id)).toMatchObject({ code: 'INSUFFICIENT_BALANCE' })
  })
})

test('by its global id, and again under its Idempotency-Key, also once the payment is reversed', async () => {
  const shop = await fixture.merchant()
  const id = await paidOff(shop, { amount: 5_000, payment_method: providers[3] })
  const key = randomUUID()
  const ask = async () => {
    const response = await fetch(`${fixture.url}/graphql`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Authorization: `Bearer ${shop.token}`,
        'Idempotency-Key': key,
      },
      body: JSON.stringify({ query: document, variables: { id: btoa(`Transaction:${id}`) } }),
    })
    return (await response.json()).data.refundTransaction
  }
  const first = await ask()
  expect(first.status).toBe('SUCCESS')
  await fixture.database.owner.query(
    `UPDATE idempotency_key SET answer = NULL, locked_until = clock_timestamp() - interval '1 ms'
     WHERE key = $1`,
    [key],
  )
  expect(await ask()).toEqual(first)
  expect(await given(shop, id)).toMatchObject({ status: 'REVERSED', refundedAmount: 5_000 })
  expect((await given(shop, id)).refunds).toHaveLength(1)
})
