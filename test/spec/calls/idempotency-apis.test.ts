import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { customer, openFixture } from '../../kit/fixture.ts'

// One `Idempotency-Key` is one request of a merchant, whether REST or GraphQL takes it.

const fixture = await openFixture()
const { owner } = fixture.database
const shop = await fixture.merchant()

interface KeyedPayment {
  key: string
  phone: string
}

/** The outcome of a request: whether it made the payment, or was refused. */
interface Outcome {
  isMade: boolean
  /** The message of a refusal. */
  words: string | undefined
}

const apis = {
  async REST({ key, phone }: KeyedPayment): Promise<Outcome> {
    const { status, body } = await post('/merchant/api/pay', key, {
      amount: 5_000,
      payment_method: 'OperatorA',
      customer_phone: phone,
    })
    return { isMade: status === 202, words: body.message }
  },
  async GraphQL({ key, phone }: KeyedPayment): Promise<Outcome> {
    const query = `mutation ($phone: String!) {
      collectPayment(input: { amount: 5000, customerPhone: $phone, paymentMethod: OperatorA }) {
        ... on PaymentInitiation { status }
      }
    }`
    const { body } = await post('/graphql', key, { query, variables: { phone } })
    return { isMade: body.errors === undefined, words: body.errors?.[0].message }
  },
}

async function post(path: string, key: string, body: object) {
  const response = await fetch(`${fixture.url}${path}`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Authorization: `Bearer ${shop.token}`,
      'Idempotency-Key': key,
    },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: JSON.parse(await response.text()) }
}

async function paymentCount(phone: string): Promise<number> {
  const { rowCount } = await owner.query('SELECT FROM transaction WHERE customer_phone = $1', [phone])
  return rowCount ?? 0
}

test.each([
  ['REST', 'GraphQL'],
  ['GraphQL', 'REST'],
] as const)('a key that %s took is used up for %s: one payment, whose answer stays', async (first, other) => {
  const asked = { key: randomUUID(), phone: customer('11') }
  expect(await apis[first](asked)).toMatchObject({ isMade: true })
  const refused = { isMade: false, words: expect.stringContaining('by the other API') }
  expect(await apis[other](asked)).toEqual(refused)
  // The process died before it kept the answer: only the first API can go on with the payment.
  await owner.query(
    `UPDATE idempotency_key SET answer = NULL, locked_until = clock_timestamp() - interval '1 ms'
     WHERE key = $1`,
    [asked.key],
  )
  expect(await apis[other](asked)).toEqual(refused)
  expect(await apis[first](asked)).toMatchObject({ isMade: true })
  expect(await paymentCount(asked.phone)).toBe(1)
})

test('a key that both APIs take at the same moment makes one payment', async () => {
  const payments = Array.from({ length: 6 }, () => ({ key: randomUUID(), phone: customer('11') }))
  const outcomes = await Promise.all(
    payments.map((asked) => Promise.all([apis.REST(asked), apis.GraphQL(asked)])),
  )
  const madeCounts = outcomes.map((pair) => pair.filter(({ isMade }) => isMade).length)
  expect(madeCounts).toEqual(payments.map(() => 1))
  expect(await Promise.all(payments.map(({ phone }) => paymentCount(phone)))).toEqual(madeCounts)
})
