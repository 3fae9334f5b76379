import { randomUUID } from 'node:crypto'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { customer, hour, openFixture } from '../../kit/fixture.ts'

// A client that repeats a request under its `Idempotency-Key` after a time in the request has passed gets the
// kept answer, and nothing happens twice.

const fixture = await openFixture()
const shop = await fixture.merchant()
beforeAll(() => fixture.fund(shop, 100_000))
afterEach(() => void vi.useRealTimers())

const refusal = '... on Refusal { code message }'
const graphql = (query: string): [string, object] => ['/graphql', { query }]
/** In an hour, in a form that the service does not write by itself. */
const soon = (now: Date) => new Date(now.getTime() + hour).toISOString().replace('Z', '+00:00')
const to = customer('00')
const { payouts, links, keys } = {
  payouts: 'SELECT id FROM payout WHERE merchant_id = $1',
  links: 'SELECT id FROM payment_link WHERE merchant_id = $1',
  keys: 'SELECT id FROM api_key WHERE merchant_id = $1',
}

test.each<[string, string, (at: string) => [path: string, body: object]]>([
  [
    'a scheduled payout in REST',
    payouts,
    (at) => [
      '/merchant/api/payouts',
      { amount: 1_000, payment_method: 'OperatorA', destination_phone: to, scheduled_at: at },
    ],
  ],
  [
    'a scheduled payout in GraphQL',
    payouts,
    (at) =>
      graphql(`mutation { createPayout(input: { amount: 1000, paymentMethod: OperatorA,
        destinationPhone: "${to}", scheduledAt: "${at}" }) {
        ... on Payout { databaseId status } ${refusal} } }`),
  ],
  [
    'a link that expires, in REST',
    links,
    (at) => ['/merchant/api/payment-links', { title: 'Paie', amount: 5_000, expires_at: at }],
  ],
  [
    'a link that expires, in GraphQL',
    links,
    (at) =>
      graphql(`mutation { createPaymentLink(input: { title: "Paie", amount: 5000, expiresAt: "${at}" }) {
        ... on PaymentLink { databaseId } ${refusal} } }`),
  ],
  [
    'an API key that expires',
    keys,
    (at) =>
      graphql(`mutation { createApiKey(input: { name: "Till", scopes: [PAY], expiresAt: "${at}" }) {
        ... on IssuedApiKey { key secret } ${refusal} } }`),
  ],
])('%s is repeated after its time', async (_what, sql, write) => {
  // Keys expire in real time, the others by the clock of the service.
  const [path, body] = write(soon(sql === keys ? new Date() : fixture.app.services.clock.now()))
  const key = randomUUID()
  const send = async () => {
    const response = await fetch(`${fixture.url}${path}`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Authorization: `Bearer ${shop.token}`,
        'Idempotency-Key': key,
      },
      body: JSON.stringify(body),
    })
    return { text: await response.text(), replayed: response.headers.get('idempotent-replayed') }
  }
  const made = async () => (await fixture.database.owner.query(sql, [shop.merchantId])).rowCount ?? 0
  const before = await made()
  const first = await send()
  expect(await made(), first.text).toBe(before + 1)
  if (sql === keys)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 2 * hour, shouldAdvanceTime: true })
  else await fixture.advance(2 * hour)
  expect(await send()).toEqual({ text: first.text, replayed: 'true' })
  expect(await made()).toBe(before + 1)
})

test.each([
  ['in the past', -hour, 'must be in the future'],
  ['eleven years ahead', 11 * 366 * 24 * hour, 'must be at most ten years ahead'],
])(
  'a new API key that expires %s is refused, and the key of the request stays free',
  async (_when, by, why) => {
    const key = randomUUID()
    const ask = async (at: number) => {
      const response = await fetch(`${fixture.url}/graphql`, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          Authorization: `Bearer ${shop.token}`,
          'Idempotency-Key': key,
        },
        body: JSON.stringify({
          query: `mutation { createApiKey(input: { name: "Till", scopes: [PAY],
          expiresAt: "${new Date(at).toISOString()}" }) { __typename ${refusal} } }`,
        }),
      })
      return (await response.json()) as { data: object }
    }
    const { rows } = await fixture.database.owner.query(keys, [shop.merchantId])
    expect((await ask(Date.now() + by)).data).toMatchObject({
      createApiKey: { code: 'INVALID_INPUT', message: `expires_at ${why}.` },
    })
    expect((await fixture.database.owner.query(keys, [shop.merchantId])).rows).toEqual(rows)
    expect((await ask(Date.now() + hour)).data).toEqual({ createApiKey: { __typename: 'IssuedApiKey' } })
  },
)
