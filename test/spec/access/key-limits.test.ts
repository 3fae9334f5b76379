import { randomUUID } from 'node:crypto'
import { createClient } from 'graphql-ws'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { eventually } from '../../kit/eventually.ts'
import { scopes as allScopes } from '../../../src/identity/callers/scopes.ts'
import { makeMember } from '../../kit/members.ts'
import type { RestAnswer, TestMerchant } from '../../kit/app.ts'
import { customer, hour, openFixture } from '../../kit/fixture.ts'
import { msUntilNoon } from '../../kit/noon.ts'

// The limits of an API key, and of its tokens.
const fixture = await openFixture({ TRUSTED_PROXIES: '127.0.0.1' })
const { owner } = fixture.database
// A limit is that of a UTC day of the service's clock.
await fixture.advance(msUntilNoon())

interface Pair {
  key: string
  secret: string
  apiKey: { id: string; databaseId: number; limits: unknown }
}

const limitsOf = 'limits { maxPerPayment maxPerDay paymentMethods addresses }'
const issued = `__typename ... on IssuedApiKey { key secret apiKey { id databaseId ${limitsOf} } }
  ... on Refusal { code message }`

/** The root field of the answer, with the type that the test names; else the first error. */
async function ask<T = unknown>(
  document: string,
  variables: object,
  token: string,
  base = fixture.url,
): Promise<T> {
  const response = await fetch(`${base}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
    body: JSON.stringify({ query: document, variables }),
  })
  const { data, errors } = (await response.json()) as { data?: Record<string, T>; errors?: T[] }
  return (data ? Object.values(data)[0] : errors?.[0]) as T
}
const create = (shop: { token: string }, limits: object) =>
  ask<Pair>(
    `mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { ${issued} } }`,
    { input: { name: 'Till', scopes: allScopes.map((scope) => scope.toUpperCase()), limits } },
    shop.token,
  )
const auth = (
  { key, secret }: Pick<Pair, 'key' | 'secret'>,
  body: object = {},
  from = '192.0.2.7',
): Promise<RestAnswer> =>
  fixture.rest('POST', '/auth', {
    headers: { 'X-API-Key': key, 'X-API-Secret': secret, 'X-Forwarded-For': from },
    body: { scopes: allScopes, ...body },
  })
async function tokenOf(pair: Pick<Pair, 'key' | 'secret'>, limits?: object, from?: string): Promise<string> {
  const { body } = await auth(pair, limits && { limits }, from)
  return body['data'].token as string
}

/** A merchant with money, and a key of it with limits. */
async function limited(
  limits: object,
  amount = 1_000_000,
): Promise<{ shop: TestMerchant; pair: Pair; token: string }> {
  const shop = await fixture.merchant()
  await fixture.fund(shop, amount)
  const pair = await create(shop, limits)
  return { shop, pair, token: await tokenOf(pair) }
}

const payout = (token: string, body: object = {}, base = fixture.url): Promise<RestAnswer> =>
  fixture.deposit({ token }, body, base, '/payouts')
const deposit = (token: string, body: object = {}, base = fixture.url) =>
  fixture.deposit({ token }, body, base)
const spent = async ({ merchantId }: TestMerchant) => {
  const { rows } = await owner.query(
    `SELECT whose, amount::int FROM key_spending WHERE merchant_id = $1 ORDER BY whose = 'key' DESC`,
    [merchantId],
  )
  return rows.map(({ whose, amount }) => [whose === 'key' ? 'key' : 'token', amount])
}
const refused = (limit: string) => ({ status: 403, body: { success: false, limit } })

test('a key shows its limits, and keeps them when it is regenerated', async () => {
  const shop = await fixture.merchant()
  const limits = {
    maxPerPayment: 5_000,
    maxPerDay: 50_000,
    paymentMethods: ['OperatorA', 'OperatorD'],
    addresses: ['192.0.2.0/24', '2001:db8::1'],
  }
  const made = await create(shop, { ...limits, addresses: [...limits.addresses, '2001:DB8:0::1'] })
  expect(made.apiKey.limits).toEqual(limits)
  const again = await ask<Pair>(
    `mutation ($id: ID!) { regenerateApiKey(id: $id) { ${issued} } }`,
    { id: made.apiKey.id },
    shop.token,
  )
  expect(again.apiKey).toEqual(made.apiKey)
  const listed = await ask(`{ apiKeys { nodes { ${limitsOf} } } }`, {}, shop.token)
  expect(listed).toEqual({ nodes: [{ limits }, { limits: null }] })
  expect((await auth(again)).body['data'].limits).toEqual({
    max_per_payment: 5_000,
    max_per_day: 50_000,
    payment_methods: limits.paymentMethods,
    addresses: limits.addresses,
  })
  expect((await auth({ key: shop.apiKey, secret: shop.apiSecret })).body['data']).not.toHaveProperty('limits')
})

test('20 deposits of 10,000 at once under 50,000 a day: five pass, over all APIs and processes', async () => {
  const { shop, pair, token } = await limited({ maxPerDay: 50_000 })
  const bases = [fixture.url, await fixture.sibling()]
  const amount = 10_000
  const viaGraphQL = async (nth: number) => {
    const document = `mutation ($phone: String!) { deposit(input: { amount: 10000, customerPhone: $phone,
      paymentMethod: OperatorD }) { __typename ... on LimitExceededError { limit } } }`
    const { limit } = await ask<{ limit?: string }>(
      document,
      { phone: customer('00') },
      token,
      bases[nth % 2],
    )
    return limit === 'MAX_PER_DAY' ? 403 : 200
  }
  const channels = [
    async (nth: number) => (await deposit(token, { amount }, bases[nth % 2])).status,
    viaGraphQL,
    async (nth: number) => {
      const { status } = await payout(token, { amount, destination_phone: customer('00') }, bases[nth % 2])
      return status === 201 ? 200 : status
    },
  ]
  const statuses = await Promise.all(
    Array.from({ length: 20 }, (_none, nth) => (channels[nth % 3] as (typeof channels)[number])(nth >> 1)),
  )
  expect(statuses.toSorted((a, b) => a - b)).toEqual([...Array(5).fill(200), ...Array(15).fill(403)])
  expect(await spent(shop)).toEqual([['key', 50_000]])
  // Another token of the key has nothing left either; another key of the account can still pay.
  expect(await deposit(await tokenOf(pair), { amount })).toMatchObject(refused('max_per_day'))
  expect(await deposit(shop.token, { amount })).toMatchObject({ status: 200 })
})

test('20 plain deposits of one process at once share statements, and five pass', async () => {
  const { shop, token } = await limited({ maxPerDay: 50_000 })
  const answers = await Promise.all(Array.from({ length: 20 }, () => deposit(token, { amount: 10_000 })))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(5)
  const [over] = answers.filter(({ status }) => status === 403)
  expect(over?.body).toMatchObject({ limit: 'max_per_day', message: expect.stringContaining('0 XOF left') })
  expect(await fixture.available(shop)).toBe(950_000)
})

test('the day is the UTC day of the service; a refused or repeated payment uses nothing of it', async () => {
  const { shop, token } = await limited({ maxPerDay: 5_000 }, 4_000)
  const reference = randomUUID()
  expect(await deposit(token, { amount: 5_000 })).toMatchObject({ status: 400 })
  expect(await spent(shop)).toEqual([])
  await fixture.fund(shop, 100_000)
  expect(await deposit(token, { amount: 4_000, reference })).toMatchObject({ status: 200 })
  // A repeat finds the payment, though nothing is left of the limit.
  expect(await deposit(token, { amount: 4_000, reference })).toMatchObject({ status: 409 })
  const scheduled_at = new Date(Date.now() + 48 * hour).toISOString()
  const body = { amount: 1_000, destination_phone: customer('00'), scheduled_at }
  expect(await payout(token, { ...body, amount: 2_000 })).toMatchObject(refused('max_per_day'))
  const made = await payout(token, body)
  expect(made.status).toBe(201)
  const cancelled = await ask(
    'mutation ($id: ID!) { cancelPayout(id: $id) { __typename } }',
    { id: String(made.body.data.id) },
    token,
  )
  expect(cancelled).toEqual({ __typename: 'Payout' })
  expect(await deposit(token)).toMatchObject(refused('max_per_day'))
  await fixture.advance(24 * hour)
  expect(await deposit(token, { amount: 5_000 })).toMatchObject({ status: 200 })
  // Days before yesterday are deleted.
  await owner.query(`UPDATE key_spending SET day = day - 2 WHERE merchant_id = $1`, [shop.merchantId])
  expect(await deposit(token, { amount: 1_000 })).toMatchObject({ status: 200 })
  expect(await spent(shop)).toEqual([['key', 1_000]])
})

test('a payment beyond a limit, or by another operator, is refused, and nothing is recorded', async () => {
  const { shop, token } = await limited({ maxPerPayment: 5_000, paymentMethods: ['OperatorA'] })
  const phone = customer('00')
  const before = await fixture.rowCounts()
  const channels: [string, Promise<RestAnswer>][] = [
    ['max_per_payment', deposit(token, { amount: 5_001 })],
    ['payment_methods', deposit(token, { payment_method: 'OperatorD' })],
    ['max_per_payment', payout(token, { amount: 5_001, destination_phone: phone })],
    ['payment_methods', payout(token, { payment_method: 'OperatorB', destination_phone: phone })],
    ['payment_methods', fixture.pay({ token }, { payment_method: 'OperatorC' })],
  ]
  for (const [limit, answer] of channels) expect(await answer).toMatchObject(refused(limit))
  // The fields are checked first.
  expect(await deposit(token, { amount: 5_001, customer_phone: '1' })).toMatchObject({ status: 400 })
  expect(await fixture.rowCounts()).toEqual(before)
  expect(await deposit(token, { amount: 5_000 })).toMatchObject({ status: 200 })
  // Money that comes in has no limit.
  const paid = await fixture.paid({ token }, { amount: 9_000, customer_phone: customer('00') })
  await eventually(async () => expect(await fixture.statusOf(shop, paid['transaction_id'])).toBe('success'))
  const refund = (amount: number) =>
    ask(
      `mutation ($id: ID!, $amount: Amount) { refundTransaction(id: $id, amount: $amount) {
        ... on LimitExceededError { code limit message } ... on PaymentInitiation { status } } }`,
      { id: String(paid['transaction_id']), amount },
      token,
    )
  expect(await refund(5_001)).toEqual({
    code: 'LIMIT_EXCEEDED',
    limit: 'MAX_PER_PAYMENT',
    message: 'This API key or token is limited to 5000 XOF per payment. Nothing was recorded.',
  })
  expect(await refund(4_000)).toEqual({ status: 'SUCCESS' })
})

test('refunds use the daily limit', async () => {
  const { shop, token } = await limited({ maxPerDay: 3_000 })
  const paid = await fixture.paid(shop, { amount: 9_000, customer_phone: customer('00') })
  await eventually(async () => expect(await fixture.statusOf(shop, paid['transaction_id'])).toBe('success'))
  const refund = () =>
    ask(
      `mutation ($id: ID!) { refundTransaction(id: $id, amount: 2000) { __typename } }`,
      { id: String(paid['transaction_id']) },
      token,
    )
  expect(await refund()).toEqual({ __typename: 'PaymentInitiation' })
  expect(await refund()).toEqual({ __typename: 'LimitExceededError' })
  expect(await spent(shop)).toEqual([['key', 2_000]])
})

test('a token may be narrower than its key, and uses both limits', async () => {
  const { shop, pair, token } = await limited({
    maxPerDay: 10_000,
    paymentMethods: ['OperatorA', 'OperatorD'],
  })
  const narrow = await auth(pair, { limits: { max_per_day: 4_000, payment_methods: ['OperatorA'] } })
  expect(narrow.body['data'].limits).toEqual({ max_per_day: 4_000, payment_methods: ['OperatorA'] })
  const till = narrow.body['data'].token as string
  expect(await deposit(till, { payment_method: 'OperatorD' })).toMatchObject(refused('payment_methods'))
  expect(await deposit(till, { amount: 3_000 })).toMatchObject({ status: 200 })
  expect(await deposit(till, { amount: 2_000 })).toMatchObject(refused('max_per_day'))
  expect(await deposit(token, { amount: 6_500 })).toMatchObject({ status: 200 })
  // The token has 1,000 left, and the key 500.
  expect(await deposit(till, { amount: 1_000 })).toMatchObject(refused('max_per_day'))
  expect(await spent(shop)).toEqual([
    ['key', 9_500],
    ['token', 3_000],
  ])
  // Also for a key without limits, over GraphQL.
  const credentials = { apiKey: shop.apiKey, apiSecret: shop.apiSecret, scopes: ['deposit'] }
  const minted = await ask<{ token: string }>(
    `mutation ($input: AuthenticateInput!) { authenticate(input: $input) {
      ... on AccessToken { token ${limitsOf} } } }`,
    { input: { ...credentials, limits: { maxPerDay: 1_500, maxPerPayment: null } } },
    '',
  )
  expect(minted).toMatchObject({ limits: { maxPerDay: 1_500, maxPerPayment: null, addresses: null } })
  expect((await deposit(minted.token)).status).toBe(200)
  expect(await deposit(minted.token)).toMatchObject(refused('max_per_day'))
  expect(await deposit(shop.token)).toMatchObject({ status: 200 })
})

test('a token is never wider than its key: 400 names each field', async () => {
  const { pair } = await limited({
    maxPerPayment: 5_000,
    maxPerDay: 50_000,
    paymentMethods: ['OperatorA'],
    addresses: ['192.0.2.0/24', '2001:db8::/32'],
  })
  const wider = {
    max_per_payment: 5_001,
    max_per_day: 50_001,
    payment_methods: ['OperatorA', 'OperatorB'],
    addresses: ['192.0.2.9', '192.0.0.0/16'],
  }
  const { status, body } = await auth(pair, { limits: wider, expires_in_hours: 0 })
  expect(status).toBe(400)
  expect(body['errors'].map(({ field }: { field: string }) => field)).toEqual([
    'expires_in_hours',
    ...Object.keys(wider).map((field) => `limits.${field}`),
  ])
  const within = { addresses: ['192.0.2.9', '192.0.2.128/25', '2001:db8:1::/48'], max_per_day: 50_000 }
  expect(await auth(pair, { limits: within })).toMatchObject({ status: 200 })
})

test.each([
  [{ max_per_payment: 0 }, 'max_per_payment'],
  [{ max_per_payment: 1.5 }, 'max_per_payment'],
  [{ max_per_day: '5000' }, 'max_per_day'],
  [{ max_per_day: 1e13 }, 'max_per_day'],
  [{ payment_methods: [] }, 'payment_methods'],
  [{ payment_methods: ['BankTransfer'] }, 'payment_methods'],
  [{ payment_methods: 'OperatorA' }, 'payment_methods'],
  [{ addresses: ['10.0.0.7/8'] }, 'addresses[0]'],
  [{ addresses: ['nowhere'] }, 'addresses[0]'],
  [{ addresses: Array.from({ length: 21 }, (_none, nth) => `192.0.2.${nth}`) }, 'addresses'],
  ['none', 'max_per_payment'],
])('400 limits %j', async (limits, field) => {
  const { pair } = await (shared ??= limited({ maxPerDay: 5_000_000 }))
  await owner.query('TRUNCATE rate_limit')
  const { status, body } = await auth(pair, { limits })
  expect(status).toBe(400)
  expect(body['errors'][0].field).toBe(`limits.${field}`)
  // Invalid limits are reported only once the key is known.
  expect(await auth({ ...pair, key: `mk_${'x'.repeat(22)}` }, { limits })).toMatchObject({ status: 401 })
})
let shared: ReturnType<typeof limited> | undefined

test('addresses are checked over every protocol: /auth, REST, GraphQL, sockets, streams', async () => {
  const shop = await fixture.merchant()
  const pair = await create(shop, { addresses: ['192.0.2.0/24'] })
  const refusal = { status: 403, body: { message: expect.stringContaining('does not allow your IP') } }
  expect(await auth(pair, {}, '198.51.100.1')).toMatchObject(refusal)
  const token = await tokenOf(pair)
  const own = await tokenOf(pair, { addresses: ['192.0.2.1'] })
  const statusFrom = async (bearer: string, from: string) => {
    const headers = { 'X-Forwarded-For': from, Authorization: `Bearer ${bearer}` }
    const rest = await fixture.rest('GET', '/balance', { headers })
    const graphql = await fetch(`${fixture.url}/graphql`, {
      method: 'POST',
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: '{"query":"{ balance { available } }"}',
    })
    const stream = await fetch(`${fixture.url}/graphql`, {
      method: 'POST',
      headers: { ...headers, 'Content-Type': 'application/json', Accept: 'text/event-stream' },
      body: '{"query":"subscription { transactionChanged { sequence } }"}',
    })
    const isStreaming = stream.headers.get('content-type')?.startsWith('text/event-stream') === true
    const streamText = isStreaming && stream.ok ? await firstOf(stream) : await stream.text()
    return [
      rest.status,
      (await graphql.text()).includes('ADDRESS_NOT_ALLOWED'),
      streamText.includes('ADDRESS_NOT_ALLOWED'),
      await socketFrom(bearer, from),
    ]
  }
  const open = [200, false, false, 'acknowledged']
  const shut = [403, true, true, 4403]
  expect(await statusFrom(token, '192.0.2.9')).toEqual(open)
  expect(await statusFrom(token, '198.51.100.1')).toEqual(shut)
  expect(await statusFrom(own, '192.0.2.1')).toEqual(open)
  expect(await statusFrom(own, '192.0.2.9')).toEqual(shut)
})

/** The first bytes of a stream, comments included. */
async function firstOf(stream: Response): Promise<string> {
  const reader = stream.body?.getReader()
  const first = await reader?.read()
  await reader?.cancel()
  return new TextDecoder().decode(first?.value)
}

function socketFrom(bearer: string, from: string): Promise<'acknowledged' | number> {
  class From extends WebSocket {
    constructor(url: string, protocol: string) {
      super(url, protocol, { headers: { 'X-Forwarded-For': from } })
    }
  }
  return new Promise((resolve) => {
    const client = createClient({
      url: `${fixture.url.replace('http', 'ws')}/graphql`,
      webSocketImpl: From,
      lazy: false,
      retryAttempts: 0,
      onNonLazyError: () => {},
      connectionParams: { authorization: `Bearer ${bearer}` },
      on: {
        connected: () => {
          resolve('acknowledged')
          void client.dispose()
        },
        closed: (event) => resolve((event as CloseEvent).code),
      },
    })
  })
}

test('a limited key makes no key, renews none, and invites only a viewer', async () => {
  const { shop, pair, token } = await limited({ maxPerPayment: 5_000 })
  const narrow = await tokenOf({ key: shop.apiKey, secret: shop.apiSecret }, { max_per_payment: 5_000 })
  for (const bearer of [token, narrow]) {
    expect(await create({ token: bearer }, { maxPerPayment: 1 })).toMatchObject({ code: 'FORBIDDEN' })
    const renewed = await ask(
      `mutation ($id: ID!) { regenerateApiKey(id: $id) { ${issued} } }`,
      { id: pair.apiKey.id },
      bearer,
    )
    expect(renewed).toMatchObject({ code: 'FORBIDDEN' })
    for (const [role, status] of Object.entries({ finance: 403, viewer: 201 })) {
      const body = { name: 'Awa', email: `${role}-${bearer.slice(-8)}@example.com`, role }
      expect(await fixture.rest('POST', '/team/invite', { token: bearer, body })).toMatchObject({ status })
    }
  }
  const member = await makeMember(fixture.app.services.access, shop.merchantId, 'owner')
  expect(await create(member, { maxPerPayment: 1 })).toMatchObject({ __typename: 'IssuedApiKey' })
})
