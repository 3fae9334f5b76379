import { inspect } from 'node:util'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { regenerateApiKey, revokeApiKey } from '../../src/identity/keys/api-keys.ts'
import { type Access, authenticate, exchangeCredentials } from '../../src/identity/callers/authenticate.ts'
import { rateLimitHeaders } from '../../src/limits/window.ts'
import { makeApiKey, makeApiSecret } from '../../src/identity/secrets/secrets.ts'
import { openPool } from '../../src/database/client.ts'
import { DomainError } from '../../src/shared/errors.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { eventually } from '../kit/eventually.ts'
import { deactivate, makeMerchant, master, openTestAccess, signIn } from '../kit/merchants.ts'

let db: TestDatabase
let otherPool: ReturnType<typeof openPool>
let access: Access
/** A second process of the service, with connections of its own. */
let elsewhere: Access
beforeAll(async () => {
  db = await createTestDatabase()
  otherPool = openPool(db.connection, 10, null, () => {})
  access = await openTestAccess(db.database.pool)
  elsewhere = await openTestAccess(otherPool)
})
afterAll(async () => {
  access.close()
  elsewhere.close()
  await otherPool.end()
  await db.drop()
})
afterEach(() => db.owner.query('TRUNCATE rate_limit, sign_in_wait'))

const address = '192.0.2.1'
const present = (at: Access, token: string, clientAddress: string | null = address) =>
  authenticate(at, { authorization: `Bearer ${token}`, clientAddress })
const outcome = (promise: Promise<unknown>) =>
  promise.then(
    () => 'accepted',
    (error: unknown) => (error instanceof DomainError ? error.code : error),
  )
const refusalOf = async (promise: Promise<unknown>): Promise<DomainError> => {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof DomainError)) throw new Error(`no refusal but ${inspect(error)}`)
  return error
}

test('a key and its secret become a token: default scopes, 24 hours, valid on every node', async () => {
  const shop = await makeMerchant(db.database.pool)
  const before = Date.now()
  const { token, expiresIn, expiresAt, scopes, rateLimit } = await signIn(access, shop)
  expect(scopes).toEqual(['pay', 'deposit', 'balance'])
  expect(expiresIn).toBe(86_400)
  // To the second.
  expect(expiresAt.getTime()).toBeGreaterThan(before + 86_400_000 - 1_000)
  expect(expiresAt.getTime()).toBeLessThanOrEqual(Date.now() + 86_400_000)
  expect(rateLimit).toMatchObject({ allowed: true, limit: 20, remaining: 19 })
  for (const node of [access, elsewhere]) {
    expect(await present(node, token)).toMatchObject({
      merchantId: shop.merchantId,
      apiKeyId: shop.apiKeyId,
      scopes: new Set(['pay', 'deposit', 'balance']),
    })
  }
})

test('a token has the requested scopes and hours, each scope once', async () => {
  const shop = await makeMerchant(db.database.pool, { scopes: ['team', 'payout'] })
  const options = { scopes: ['payout', 'team', 'payout'], expiresInHours: 720 }
  expect(await signIn(access, shop, options)).toMatchObject({
    scopes: ['payout', 'team'],
    expiresIn: 720 * 3_600,
  })
  expect(await signIn(access, shop, { scopes: ['team'], expiresInHours: 1 })).toMatchObject({
    expiresIn: 3_600,
  })
  expect(await signIn(access, shop, { scopes: ['team'], expiresInHours: null })).toMatchObject({
    expiresIn: 86_400,
  })
})

test.each<[string, unknown, unknown, string[]]>([
  ['an empty list', [], 24, ['scopes']],
  ['an unknown scope', ['pay', 'everything'], 24, ['scopes']],
  ['a scope that is no text', ['pay', 1], 24, ['scopes']],
  ['a scope that every object has', ['constructor'], 24, ['scopes']],
  ['scopes as text', 'pay', 24, ['scopes']],
  ['no hours', ['pay'], 0, ['expiresInHours']],
  ['too many hours', ['pay'], 721, ['expiresInHours']],
  ['half an hour', ['pay'], 0.5, ['expiresInHours']],
  ['hours as text', ['pay'], '24', ['expiresInHours']],
  ['endless hours', ['pay'], Number.POSITIVE_INFINITY, ['expiresInHours']],
  ['both wrong', [], true, ['scopes', 'expiresInHours']],
])('INVALID_INPUT names the field: %s', async (_name, scopes, expiresInHours, fields) => {
  const shop = await makeMerchant(db.database.pool)
  const { code, detail } = await refusalOf(signIn(access, shop, { scopes, expiresInHours }))
  expect(code).toBe('INVALID_INPUT')
  expect(detail.problems?.map((problem) => problem.field)).toEqual(fields)
  expect(detail.rateLimit).toMatchObject({ remaining: 19 })
})

test('a scope that the key lacks is named, also where it is a default scope', async () => {
  const shop = await makeMerchant(db.database.pool, { scopes: ['balance'] })
  const error = await refusalOf(signIn(access, shop, { scopes: ['balance', 'payout'] }))
  expect(error).toMatchObject({ code: 'FORBIDDEN', detail: { requiredScopes: ['payout'] } })
  expect(error.message).toContain('payout')
  expect((await refusalOf(signIn(access, shop))).detail.requiredScopes).toEqual(['pay', 'deposit'])
})

test('refusals come in order: limit, credentials, account, address, scope, input', async () => {
  const { pool } = db.database
  const shop = await makeMerchant(pool, { whitelist: ['198.51.100.0/24'], scopes: ['pay'] })
  const everythingWrong = { scopes: ['payout', 'bogus'], expiresInHours: -1 }
  const wrongSecret = { ...shop, secret: makeApiSecret() }
  const codeOf = async (promise: Promise<unknown>) => (await refusalOf(promise)).code
  expect(await codeOf(signIn(access, wrongSecret, everythingWrong))).toBe('CREDENTIALS_REJECTED')
  await deactivate(pool, shop.merchantId)
  expect(await codeOf(signIn(access, wrongSecret, everythingWrong))).toBe('CREDENTIALS_REJECTED')
  expect(await codeOf(signIn(access, shop, everythingWrong))).toBe('ACCOUNT_INACTIVE')
  await pool.query(`UPDATE merchant SET status = 'active' WHERE id = $1`, [shop.merchantId])
  expect(await codeOf(signIn(access, shop, everythingWrong))).toBe('ADDRESS_NOT_ALLOWED')
  const allowed = { ...everythingWrong, clientAddress: '198.51.100.7' }
  expect(await codeOf(signIn(access, shop, allowed))).toBe('FORBIDDEN')
  expect(await codeOf(signIn(access, shop, { ...allowed, scopes: ['bogus'] }))).toBe('INVALID_INPUT')
  for (let at = 0; at < 17; at += 1) await codeOf(signIn(access, wrongSecret))
  expect(await codeOf(signIn(access, wrongSecret, everythingWrong))).toBe('RATE_LIMITED')
})

test('an unknown key, a wrong secret, a revoked key and none at all get the same message', async () => {
  const { pool } = db.database
  const [shop, revoked] = [await makeMerchant(pool), await makeMerchant(pool)]
  await revokeApiKey(pool, revoked)
  const secret = shop.secret.reveal()
  const attempts: [string | undefined, string | undefined][] = [
    [makeApiKey(), secret],
    [shop.key, makeApiSecret().reveal()],
    [revoked.key, revoked.secret.reveal()],
    [shop.key, `${secret.slice(0, -1)}_`],
    [shop.key, undefined],
    [undefined, secret],
    [undefined, undefined],
    [`${shop.key} `, secret],
    [shop.key.toLowerCase(), secret],
    [`' OR 1=1 --`, secret],
    [secret, shop.key],
  ]
  for (const [key, given] of attempts) {
    const error = await refusalOf(exchangeCredentials(access, { apiKey: key, apiSecret: given }, address))
    expect(error.code).toBe('CREDENTIALS_REJECTED')
    expect(error.message).toBe('The API key or the API secret is not valid.')
    expect(Object.keys(error.detail)).toEqual(['rateLimit'])
    expect(inspect(error, { depth: 9 })).not.toContain(secret)
  }
})

test('an unknown key costs the same statements as a wrong secret, and as many rows', async () => {
  const shop = await makeMerchant(db.database.pool)
  const statements: [string, number | null][] = []
  const pool: typeof db.database.pool = Object.create(db.database.pool, {
    query: {
      value: async (config: { name: string; text: string }) => {
        const answer = await db.database.pool.query(config)
        statements.push([config.name, answer.rowCount])
        return answer
      },
    },
  })
  const statementsOf = async (key: string) => {
    statements.length = 0
    const secret = makeApiSecret().reveal()
    await refusalOf(exchangeCredentials({ ...access, pool }, { apiKey: key, apiSecret: secret }, address))
    return [...statements]
  }
  const forWrongSecret = await statementsOf(shop.key)
  expect(forWrongSecret).toEqual([
    ['find-api-key', 1],
    ['take_key_try', 1],
  ])
  expect(await statementsOf(makeApiKey())).toEqual(forWrongSecret)
  expect(await statementsOf('no key of ours')).toEqual([['take_key_try', 1]])
})

test('20 attempts per key and address over both nodes, wrong or right, then 429 with the wait', async () => {
  const shop = await makeMerchant(db.database.pool)
  const attempts = Array.from({ length: 60 }, (_, at) =>
    signIn(at % 2 ? access : elsewhere, at % 3 ? shop : { ...shop, secret: makeApiSecret() }),
  )
  const outcomes = await Promise.all(attempts.map(outcome))
  expect(outcomes.filter((code) => code === 'RATE_LIMITED')).toHaveLength(40)
  const { code, detail } = await refusalOf(signIn(access, shop))
  expect(code).toBe('RATE_LIMITED')
  expect(detail.retryAfterS).toBeGreaterThan(880)
  expect(detail.retryAfterS).toBeLessThanOrEqual(900)
  expect(rateLimitHeaders('auth', detail.rateLimit as never)).toEqual({
    'RateLimit-Policy': '"auth";q=20;w=900',
    RateLimit: `"auth";r=0;t=${detail.retryAfterS}`,
    'Retry-After': String(detail.retryAfterS),
  })
  // Another key of the same address keeps its own count.
  expect(await outcome(signIn(access, await makeMerchant(db.database.pool)))).toBe('accepted')
})

test('unknown and missing keys count per address, also under invented names', async () => {
  const attempt = (at: number, clientAddress: string) =>
    outcome(
      exchangeCredentials(
        access,
        { apiKey: [makeApiKey(), undefined, 'nonsense'][at % 3], apiSecret: makeApiSecret().reveal() },
        clientAddress,
      ),
    )
  const outcomes = await Promise.all(Array.from({ length: 30 }, (_, at) => attempt(at, '203.0.113.5')))
  expect(outcomes.filter((code) => code === 'CREDENTIALS_REJECTED')).toHaveLength(20)
  expect(outcomes.filter((code) => code === 'RATE_LIMITED')).toHaveLength(10)
  expect(await attempt(0, '203.0.113.6')).toBe('CREDENTIALS_REJECTED')
  // A merchant behind the same address still signs in.
  const shop = await makeMerchant(db.database.pool)
  expect(await outcome(signIn(access, shop, { clientAddress: '203.0.113.5' }))).toBe('accepted')
  const { rows } = await db.owner.query('SELECT name FROM rate_limit ORDER BY name')
  expect(rows.map((row) => row.name)).toEqual([
    'auth:address:203.0.113.5',
    'auth:address:203.0.113.6',
    `auth:key:${shop.apiKeyId} 203.0.113.5`,
  ])
})

/** Tries `count` wrong secrets of a key at once, each from an address of its own. */
const wrongFromAnywhere = async (shop: Awaited<ReturnType<typeof makeMerchant>>, count: number) => {
  const wrong = { ...shop, secret: makeApiSecret() }
  const tries = Array.from({ length: count }, (_, at) =>
    outcome(signIn(at % 2 ? access : elsewhere, wrong, { clientAddress: `198.51.${at >> 8}.${at & 255}` })),
  )
  return Object.groupBy(await Promise.all(tries), (code) => String(code))
}

test('a stranger with 25 wrong secrets of a key locks no other address out, known or new', async () => {
  const shop = await makeMerchant(db.database.pool)
  const wrong = { ...shop, secret: makeApiSecret() }
  const tries = Array.from({ length: 25 }, () => signIn(access, wrong, { clientAddress: '203.0.113.9' }))
  const codes = await Promise.all(tries.map(outcome))
  expect(codes.filter((code) => code === 'RATE_LIMITED')).toHaveLength(5)
  for (const node of [access, elsewhere])
    expect(await signIn(node, shop)).toMatchObject({ rateLimit: { allowed: true, limit: 20 } })
  expect(await outcome(signIn(access, shop, { clientAddress: '203.0.113.9' }))).toBe('RATE_LIMITED')
})

test('wrong secrets of a key from all addresses are bounded, except where it signed in before', async () => {
  const shop = await makeMerchant(db.database.pool)
  const server = { clientAddress: '2001:db8::1' }
  await signIn(access, shop, server)
  const codes = await wrongFromAnywhere(shop, 130)
  expect(codes['CREDENTIALS_REJECTED']).toHaveLength(100)
  expect(codes['RATE_LIMITED']).toHaveLength(30)

  const { code, detail } = await refusalOf(signIn(access, shop, { clientAddress: '203.0.113.1' }))
  expect(code).toBe('RATE_LIMITED')
  expect(detail.retryAfterS).toBeGreaterThan(3_500)
  expect(detail.retryAfterS).toBeLessThanOrEqual(3_600)
  expect(detail.rateLimit).toMatchObject({ limit: 20, remaining: 19 })

  // The server signs in from its network, up to the limit of an address, and not beyond.
  const left = Array.from({ length: 19 }, () => signIn(elsewhere, shop, { clientAddress: '2001:db8::2' }))
  expect(await Promise.all(left.map(outcome))).toEqual(Array.from({ length: 19 }, () => 'accepted'))
  expect(await outcome(signIn(access, { ...shop, secret: makeApiSecret() }, server))).toBe('RATE_LIMITED')
  // Other keys have their own bound.
  const other = await makeMerchant(db.database.pool)
  expect(await outcome(signIn(access, other, { clientAddress: '203.0.113.1' }))).toBe('accepted')
})

test('right secrets are no failures, also where the answer is a refusal', async () => {
  const shop = await makeMerchant(db.database.pool, { scopes: ['pay'], whitelist: ['198.51.0.0/16'] })
  const from = (at: number, more: object = {}) => ({ clientAddress: `198.51.77.${at}`, ...more })
  for (let at = 0; at < 12; at += 1) {
    expect(await outcome(signIn(access, shop, from(at, { scopes: ['pay'] })))).toBe('accepted')
    expect(await outcome(signIn(access, shop, from(at, { scopes: ['team'] })))).toBe('FORBIDDEN')
    const off = { clientAddress: `203.0.113.${at}` }
    expect(await outcome(signIn(access, shop, off))).toBe('ADDRESS_NOT_ALLOWED')
  }
  await deactivate(db.database.pool, shop.merchantId)
  expect(await outcome(signIn(access, shop, from(99)))).toBe('ACCOUNT_INACTIVE')
  const { rows } = await db.owner.query('SELECT failures FROM sign_in_wait')
  expect(rows).toEqual([{ failures: 0 }])
  // An address from which the key was refused is not known.
  const known = await db.owner.query(
    `SELECT account FROM sign_in_address WHERE account = encode(sha256($1), 'base64')`,
    [`key ${shop.apiKeyId}`],
  )
  expect(known.rowCount).toBe(12)
})

test('a key knows at most 100 addresses, the newest', async () => {
  const shop = await makeMerchant(db.database.pool)
  const from = (at: number) => ({ clientAddress: `192.0.2.${at}` })
  for (let at = 0; at < 103; at += 1) await signIn(access, shop, from(at))
  await wrongFromAnywhere(shop, 101)
  const codes = []
  for (const at of [0, 1, 50, 102]) codes.push(await outcome(signIn(access, shop, from(at))))
  expect(codes).toEqual(['RATE_LIMITED', 'RATE_LIMITED', 'accepted', 'accepted'])
})

test('a request without the header has no actor; any other scheme or form is refused', async () => {
  const { token } = await signIn(access, await makeMerchant(db.database.pool))
  const actorBy = (authorization: string | undefined) =>
    authenticate(access, { authorization, clientAddress: address })
  expect(await actorBy(undefined)).toBeNull()
  for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer  '])
    expect(await actorBy(`${scheme} ${token}`)).not.toBeNull()
  const wrong = [
    '',
    'Bearer',
    'Bearer ',
    token,
    `Basic ${token}`,
    `Bearer ${token} x`,
    `Bearer x ${token}`,
    `Bearer${token}`,
  ]
  for (const authorization of wrong) expect(await outcome(actorBy(authorization))).toBe('UNAUTHENTICATED')
})

test('a valid token is refused from an address off the whitelist', async () => {
  const shop = await makeMerchant(db.database.pool, { whitelist: ['192.0.2.1', '2001:db8::/32'] })
  const { token } = await signIn(access, shop)
  expect(await outcome(present(access, token, '192.0.2.1'))).toBe('accepted')
  expect(await outcome(present(access, token, '2001:db8::77'))).toBe('accepted')
  expect(await outcome(present(access, token, '192.0.2.2'))).toBe('ADDRESS_NOT_ALLOWED')
  expect(await outcome(present(access, token, null))).toBe('ADDRESS_NOT_ALLOWED')
})

test('regenerating ends the old pair at once and its tokens on both nodes', async () => {
  const shop = await makeMerchant(db.database.pool)
  const { token } = await signIn(access, shop)
  const nodes = [access, elsewhere]
  for (const node of nodes) expect(await outcome(present(node, token))).toBe('accepted')

  const fresh = await regenerateApiKey(db.database.pool, master, shop)
  for (const node of nodes) expect(await outcome(signIn(node, shop))).toBe('CREDENTIALS_REJECTED')
  access.credentials.forget(shop.apiKeyId)
  expect(await outcome(present(access, token))).toBe('UNAUTHENTICATED')

  await eventually(async () => {
    const outcomes = await Promise.all(nodes.map((node) => outcome(present(node, token))))
    expect(outcomes).toEqual(['UNAUTHENTICATED', 'UNAUTHENTICATED'])
  })
  const { token: next } = await signIn(elsewhere, fresh)
  for (const node of nodes) expect(await outcome(present(node, next))).toBe('accepted')
})

test('deactivating the account refuses the pair at once and the token soon', async () => {
  const shop = await makeMerchant(db.database.pool)
  const { token } = await signIn(access, shop)
  expect(await outcome(present(elsewhere, token))).toBe('accepted')
  await deactivate(db.database.pool, shop.merchantId)
  expect(await outcome(signIn(access, shop))).toBe('ACCOUNT_INACTIVE')
  await eventually(async () => expect(await outcome(present(elsewhere, token))).toBe('ACCOUNT_INACTIVE'))
})

test('no secret, token or key appears in the access object, in an error, or in the database', async () => {
  const shop = await makeMerchant(db.database.pool)
  const { token } = await signIn(access, shop)
  await present(access, token)
  const secret = shop.secret.reveal()
  const shown = [
    inspect(access.tokens, { depth: 9 }),
    inspect(access.credentials, { depth: 9 }),
    inspect(access.master),
  ]
  const tables = ['api_key', 'merchant', 'signing_key', 'rate_limit']
  for (const table of tables) {
    const { rows } = await db.owner.query(`SELECT t::text AS row FROM ${table} t`)
    shown.push(JSON.stringify(rows))
  }
  shown.push(inspect(await refusalOf(present(access, `${token}x`)), { depth: 9 }), JSON.stringify(shop))
  for (const text of shown) for (const hidden of [secret, token]) expect(text).not.toContain(hidden)
})
