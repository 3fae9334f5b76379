import { expect, test } from 'vitest'
import { makeMember } from '../../kit/members.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { openFixture } from '../../kit/fixture.ts'

// Keys over the API (see docs/design/rules.md#sign-in-and-tokens). `revocation.test.ts` tests which sessions
// and streams regenerating a key ends, and when.
const fixture = await openFixture({ TRUSTED_PROXIES: '127.0.0.1' })

const shared = await fixture.merchant()

const issued = `__typename ... on IssuedApiKey { key secret apiKey { id databaseId prefix lastFour scopes
  isActive expiresAt } } ... on Refusal { code message } ... on ForbiddenError { requiredScopes }`
const misfit = '... on InvalidInputError { problems { field } }'
const create = async (token: string, input: object) => {
  const document = `mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) {
    ${issued} ${misfit} } }`
  const given = { name: 'Till', scopes: ['BALANCE'], ...input }
  return answerOf(await fixture.graphql(document, { input: given }, token), 'createApiKey')
}
const regenerate = async (token: string, id: unknown) =>
  answerOf(
    await fixture.graphql(`mutation ($id: ID!) { regenerateApiKey(id: $id) { ${issued} } }`, { id }, token),
    'regenerateApiKey',
  )
const revoke = async (token: string, id: unknown) =>
  answerOf(
    await fixture.graphql(
      `mutation ($id: ID!) { revokeApiKey(id: $id) { __typename
        ... on ApiKey { isActive revokedAt } ... on Refusal { code } } }`,
      { id },
      token,
    ),
    'revokeApiKey',
  )
const answerOf = ({ body }: Awaited<ReturnType<typeof fixture.graphql>>, field: string) =>
  body['data']?.[field] ?? body['errors']?.[0]

const auth = (pair: { key: string; secret: string }, scopes: readonly string[]) =>
  fixture.rest('POST', '/auth', {
    headers: { 'X-API-Key': pair.key, 'X-API-Secret': pair.secret, 'X-Forwarded-For': '192.0.2.7' },
    body: { scopes },
  })
const tokenOf = async ({ apiKey, apiSecret }: TestMerchant, scopes: readonly string[]) =>
  (await auth({ key: apiKey, secret: apiSecret }, scopes)).body['data'].token as string
const keysOf = async ({ token }: TestMerchant) =>
  (
    await fixture.graphql(
      `{ apiKeys { totalCount nodes { databaseId name prefix lastFour scopes isActive isCurrent expiresAt
        lastUsedAt lastUsedFrom } } }`,
      {},
      token,
    )
  ).body['data'].apiKeys
const eventsOf = async ({ merchantId }: TestMerchant) => {
  const { rows } = await fixture.database.owner.query(
    `SELECT type, data FROM event WHERE merchant_id = $1 ORDER BY id`,
    [merchantId],
  )
  return rows
}

test('a new key signs in with its scopes; its secret is shown once and stored nowhere', async () => {
  const shop = await fixture.merchant()
  const owner = await makeMember(fixture.app.services.access, shop.merchantId, 'owner')
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
  const made = await create(owner.token, { scopes: ['BALANCE', 'PAY', 'PAY'], expiresAt })
  const { databaseId, prefix } = made.apiKey
  expect(made).toMatchObject({
    key: expect.stringMatching(/^mk_/),
    apiKey: { prefix: made.key.slice(0, 8), lastFour: made.key.slice(-4), isActive: true, expiresAt },
  })
  expect(await auth(made, ['pay', 'balance'])).toMatchObject({ status: 200 })
  expect(await auth(made, ['settings'])).toMatchObject({
    status: 403,
    body: { required_scopes: ['settings'] },
  })
  expect(await eventsOf(shop)).toEqual([
    {
      type: 'api_key_created',
      data: {
        api_key_id: databaseId,
        prefix,
        scopes: ['balance', 'pay'],
        created_by: `member:${owner.memberId}`,
      },
    },
  ])
  await eventually(async () =>
    // The session of the person is no key.
    expect(await keysOf(shop)).toMatchObject({
      totalCount: 2,
      nodes: [
        { databaseId, name: 'Till', lastUsedFrom: '192.0.2.7', isCurrent: false, expiresAt },
        { name: 'default', isCurrent: true, isActive: true, expiresAt: null },
      ],
    }),
  )
  const { rows } = await fixture.database.owner.query(
    `SELECT (SELECT string_agg(e::text, '') FROM event e) AS events,
       (SELECT string_agg(k::text, '') FROM api_key k) AS keys`,
  )
  expect(JSON.stringify(rows)).toContain(prefix)
  expect(JSON.stringify(rows)).not.toContain(made.secret)
})

test('the same request twice makes one key, and answers with the same secret', async () => {
  const shop = await fixture.merchant()
  const ask = async () => {
    const response = await fetch(`${fixture.url}/graphql`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Authorization: `Bearer ${shop.token}`,
        'Idempotency-Key': 'first-till',
      },
      body: JSON.stringify({
        query: `mutation { createApiKey(input: { name: "Till", scopes: [PAY] }) { ${issued} } }`,
      }),
    })
    const { data } = await response.json()
    return data
  }
  const first = await ask()
  expect(await ask()).toEqual(first)
  // The process died before it could keep its answer.
  await fixture.database.owner.query(
    `UPDATE idempotency_key SET answer = NULL, locked_until = NULL WHERE merchant_id = $1`,
    [shop.merchantId],
  )
  expect(await ask()).toEqual(first)
  expect(await keysOf(shop)).toMatchObject({ totalCount: 2 })
  expect(await eventsOf(shop)).toHaveLength(1)
})

test('no caller makes or takes over a key with more scopes than its own token', async () => {
  const shop = await fixture.merchant()
  const [{ databaseId: wide }] = (await keysOf(shop)).nodes
  const narrow = await tokenOf(shop, ['settings', 'balance'])
  const refused = { __typename: 'ForbiddenError', requiredScopes: ['pay', 'team'] }
  expect(await create(narrow, { scopes: ['PAY', 'BALANCE', 'TEAM'] })).toMatchObject(refused)
  expect(await regenerate(narrow, wide)).toMatchObject({ __typename: 'ForbiddenError' })
  expect(await create(await tokenOf(shop, ['pay']), { scopes: ['PAY'] })).toMatchObject({
    extensions: { code: 'FORBIDDEN', requiredScopes: ['settings'] },
  })
  expect(await keysOf(shop)).toMatchObject({ totalCount: 1 })
  expect(await eventsOf(shop)).toEqual([])
})

test('a key that expires makes no key that lives longer, and is dead after its expiry', async () => {
  const shop = await fixture.merchant()
  const [{ databaseId: lasting }] = (await keysOf(shop)).nodes
  const end = new Date(Date.now() + 3_600_000)
  const made = await create(shop.token, { scopes: ['SETTINGS', 'BALANCE'], expiresAt: end })
  const token = (await auth(made, ['settings', 'balance'])).body['data'].token as string
  const later = new Date(end.getTime() + 1)
  expect(await create(token, { expiresAt: later })).toMatchObject({ problems: [{ field: 'expiresAt' }] })
  expect(await create(token, {})).toMatchObject({ apiKey: { expiresAt: end.toISOString() } })
  expect(await regenerate(token, lasting)).toMatchObject({ code: 'FORBIDDEN' })
  for (const wrong of [new Date(Date.now() - 1), new Date(Date.now() + 11 * 366 * 86_400_000)])
    expect(await create(shop.token, { expiresAt: wrong })).toMatchObject({
      problems: [{ field: 'expiresAt' }],
    })

  await fixture.database.owner.query(
    `UPDATE api_key SET expires_at = now() - interval '1 second' WHERE id = $1`,
    [made.apiKey.databaseId],
  )
  expect(await auth(made, ['balance'])).toMatchObject({ status: 401 })
  expect(await create(token, {})).toMatchObject({ extensions: { code: 'UNAUTHENTICATED' } })
  await eventually(async () => expect((await fixture.rest('GET', '/balance', { token })).status).toBe(401))
})

test('regenerating gives a new pair under the same id, and adds two events to the log', async () => {
  const shop = await fixture.merchant()
  const made = await create(shop.token, {})
  const again = await regenerate(shop.token, made.apiKey.id)
  expect(again.apiKey).toMatchObject({ databaseId: made.apiKey.databaseId, scopes: ['BALANCE'] })
  expect(await auth(made, ['balance'])).toMatchObject({ status: 401 })
  expect(await auth(again, ['balance'])).toMatchObject({ status: 200 })
  expect(await eventsOf(shop)).toMatchObject([
    { type: 'api_key_created' },
    { type: 'api_key_created', data: { prefix: again.apiKey.prefix } },
    { type: 'security_alert', data: { kind: 'key_regenerated', ip: '127.0.0.1' } },
  ])
})

test('a revoked key is dead, stays in the list, and is not regenerated', async () => {
  const shop = await fixture.merchant()
  const made = await create(shop.token, {})
  const token = (await auth(made, ['balance'])).body['data'].token as string
  const first = await revoke(shop.token, made.apiKey.id)
  expect(first).toMatchObject({ __typename: 'ApiKey', isActive: false })
  expect(await revoke(shop.token, made.apiKey.databaseId)).toEqual(first)
  expect(await auth(made, ['balance'])).toMatchObject({ status: 401 })
  expect((await fixture.rest('GET', '/balance', { token })).status).toBe(401)
  expect(await regenerate(shop.token, made.apiKey.id)).toMatchObject({ code: 'NOT_FOUND' })
  expect((await keysOf(shop)).nodes[0]).toMatchObject({ isActive: false })
})

test('a revoked key makes, renews and ends no key from that moment on', async () => {
  const shop = await fixture.merchant()
  const made = await create(shop.token, {})
  // This process still accepts the token from its cache.
  expect((await fixture.rest('GET', '/balance', { token: shop.token })).status).toBe(200)
  await fixture.database.owner.query(
    'UPDATE api_key SET revoked_at = now() WHERE merchant_id = $1 AND id <> $2',
    [shop.merchantId, made.apiKey.databaseId],
  )
  const acts = [create(shop.token, {}), regenerate(shop.token, made.apiKey.id)]
  acts.push(revoke(shop.token, made.apiKey.id))
  for (const answer of await Promise.all(acts)) expect(JSON.stringify(answer)).toContain('UNAUTHENTICATED')
  expect(await auth(made, ['balance'])).toMatchObject({ status: 200 })
  const { rowCount } = await fixture.database.owner.query('SELECT FROM api_key WHERE merchant_id = $1', [
    shop.merchantId,
  ])
  expect(rowCount).toBe(2)
})

test.each([
  ['name', { name: ' ' }],
  ['name', { name: 'x'.repeat(101) }],
  ['scopes', { scopes: [] }],
])('400 %s %j', async (field, wrong) => {
  expect(await create(shared.token, wrong)).toMatchObject({ problems: [{ field }] })
})
