import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { revokeApiKey } from '../../../src/identity/keys/api-keys.ts'
import { decrypt } from '../../../src/identity/secrets/encrypt.ts'
import { nowS, openForge } from '../../kit/altered-tokens.ts'
import { eventually } from '../../kit/eventually.ts'
import { openFixture } from '../../kit/fixture.ts'

// A refused token is told what is wrong with it, in the message and in WWW-Authenticate (RFC 6750).

const fixture = await openFixture()
const shop = await fixture.merchant()
const { owner } = fixture.database
const key = await owner.query('SELECT id FROM api_key WHERE merchant_id = $1', [shop.merchantId])
const apiKeyId: number = key.rows[0].id
const { kid, public_key, encrypted_private } = (await owner.query('SELECT * FROM signing_key')).rows[0]
const der = decrypt(fixture.app.services.access.master.encryptionKey, encrypted_private, kid)
const forge = openForge(() => ({
  kid,
  publicJwk: public_key,
  ourKey: createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }),
  names: { sub: String(shop.merchantId), key: apiKeyId, kv: 1 },
}))
const otherKey = generateKeyPairSync('ed25519').privateKey
const past = { iat: nowS() - 7_200, nbf: nowS() - 7_200, exp: nowS() - 3_600 }

interface Refused {
  status: number
  challenge: string | null
  message: string
}

const doors: Readonly<Record<string, (authorization: string | undefined) => Promise<Refused>>> = {
  REST: (authorization) => ask('/merchant/api/balance', authorization),
  'an export': (authorization) => ask('/merchant/api/exports/payouts.csv', authorization),
  GraphQL: (authorization) => askGraphql('{ balance { available } }', authorization),
  'server-sent events': (authorization) =>
    askGraphql('subscription { transactionChanged { sequence } }', authorization, 'text/event-stream'),
}

async function ask(
  path: string,
  authorization?: string,
  request: { method?: string; body?: string; headers?: Record<string, string> } = {},
): Promise<Refused> {
  const response = await fetch(`${fixture.url}${path}`, {
    ...request,
    headers: { ...request.headers, ...(authorization !== undefined && { authorization }) },
  })
  const text = await response.text()
  const body = JSON.parse(/^data: (.+)$/m.exec(text)?.[1] ?? text)
  const message = body.message ?? body.errors[0].message
  return { status: response.status, challenge: response.headers.get('WWW-Authenticate'), message }
}

const askGraphql = (query: string, authorization: string | undefined, accept = 'application/json') =>
  ask('/graphql', authorization, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: accept },
    body: JSON.stringify({ query }),
  })

const realm = 'Bearer realm="merchant-payments"'

describe.each(Object.entries(doors))('%s', (_door, refusedBy) => {
  test.each([undefined, 'Bearer', 'Basic YTpi', 'nonsense'])('Authorization %j: no token', async (given) => {
    const { status, challenge, message } = await refusedBy(given)
    expect([status, challenge]).toEqual([401, realm])
    expect(message).toContain('No access token was sent')
  })

  test.each([
    ['that is no token', () => 'abc', 'is malformed'],
    ['of two words', () => 'a b', 'is malformed'],
    ['that another key signed', () => forge.sign({}, {}, otherKey), 'is malformed'],
    ['that another key signed, and that is old', () => oldForged(), 'is malformed'],
    ['that is old', () => forge.sign(past), 'has expired'],
    ['of a key that was regenerated', () => forge.sign({ kv: 9 }), 'was revoked'],
  ])('a token %s', async (_what, make, words) => {
    const { status, challenge, message } = await refusedBy(`Bearer ${await make()}`)
    expect(status).toBe(401)
    expect(message).toContain(words)
    expect(challenge).toBe(`${realm}, error="invalid_token", error_description="${message}"`)
  })
})

/** An old token whose signature is wrong: its forger must not learn that its times were read. */
async function oldForged(): Promise<string> {
  const [head, claims] = (await forge.sign(past)).split('.')
  return `${head}.${claims}.${(await forge.sign()).split('.')[2]}`
}

test('a key that was revoked: its token says so at once, also to a payment', async () => {
  const merchant = await fixture.merchant()
  const rows = await owner.query('SELECT id FROM api_key WHERE merchant_id = $1', [merchant.merchantId])
  const { pool } = fixture.app.services.database
  await revokeApiKey(pool, { merchantId: merchant.merchantId, apiKeyId: rows.rows[0].id })
  const { status, body, headers } = await fixture.pay(merchant)
  expect([status, body['code']]).toEqual([401, 'UNAUTHENTICATED'])
  expect(headers.get('WWW-Authenticate')).toContain('error="invalid_token", error_description="The access')
  await eventually(async () => expect((await fixture.pay(merchant)).body.message).toContain('was revoked'))
})

test('wrong credentials are challenged without an error of a token', async () => {
  const { status, headers } = await fixture.rest('POST', '/auth', { headers: { 'X-API-Key': 'mk_x' } })
  expect([status, headers.get('WWW-Authenticate')]).toEqual([401, realm])
})

test('no other refusal is challenged', async () => {
  const { status, headers } = await fixture.pay(shop, { amount: 1 })
  expect([status, headers.get('WWW-Authenticate')]).toEqual([400, null])
  expect(
    (await fixture.graphql('{ balance { nothing } }', {}, shop.token)).headers.get('WWW-Authenticate'),
  ).toBe(null)
})
