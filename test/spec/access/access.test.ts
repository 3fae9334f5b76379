import { SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { revokeApiKey } from '../../../src/identity/keys/api-keys.ts'
import type { Scope } from '../../../src/identity/callers/scopes.ts'
import { deactivateMerchant } from '../../../src/resources/merchants/deactivate.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { openFixture } from '../../kit/fixture.ts'

const fixture = await openFixture({ TRUSTED_PROXIES: '127.0.0.1' })
const rest = (...call: Parameters<typeof fixture.rest>) => fixture.rest(...call)
const shop = await fixture.merchant()

/** Every path that needs a token, with its scope. */
const guarded: readonly [method: string, path: string, scope: Scope][] = [
  ['POST', '/pay', 'pay'],
  ['GET', '/balance', 'balance'],
  ['GET', '/transactions', 'balance'],
  ['GET', '/transactions/1', 'balance'],
]

async function tokenWith(merchant: TestMerchant, scopes: readonly string[]): Promise<string> {
  const { body } = await rest('POST', '/auth', {
    headers: { 'X-API-Key': merchant.apiKey, 'X-API-Secret': merchant.apiSecret },
    body: { scopes },
  })
  return body['data'].token
}

const setWhitelist = (merchant: TestMerchant, addresses: string) =>
  fixture.database.owner.query('UPDATE merchant SET ip_whitelist = $2 WHERE id = $1', [
    merchant.merchantId,
    addresses,
  ])

describe.each(guarded)('%s %s', (method, path, scope) => {
  const ask = (options: Parameters<typeof rest>[2]) => rest(method, path, options)

  test('401 without a token', async () => {
    const { status, body } = await ask({})
    expect(status).toBe(401)
    expect(body).toMatchObject({ success: false, message: expect.any(String) })
    expect(body).not.toHaveProperty('required_scopes')
  })

  test.each(['', 'Bearer', 'Bearer ', 'Basic abc', 'Bearer abc', 'Bearer a.b.c', 'Bearer a b', 'nonsense'])(
    '401 Authorization: %j',
    async (header) => {
      expect((await ask({ headers: { Authorization: header } })).status).toBe(401)
    },
  )

  test('401 the API key or its secret in place of a token', async () => {
    expect((await ask({ token: shop.apiKey })).status).toBe(401)
    expect((await ask({ token: shop.apiSecret })).status).toBe(401)
  })

  test('403 without the scope, named in message and required_scopes', async () => {
    const { status, body } = await ask({ token: await tokenWith(shop, ['webhooks', 'team']) })
    expect(status).toBe(403)
    expect(body).toMatchObject({ success: false, required_scopes: [scope] })
    expect(body['message']).toContain(scope)
  })

  test('the one scope is enough', async () => {
    expect([401, 403]).not.toContain((await ask({ token: await tokenWith(shop, [scope]) })).status)
  })
})

describe('tokens', () => {
  test.each([
    ['changed in its claims', (token: string) => swapPart(token, 1)],
    ['changed in its signature', (token: string) => swapPart(token, 2)],
    ['without its signature', (token: string) => `${token.split('.').slice(0, 2).join('.')}.`],
    [
      'that says alg none',
      (token: string) => `${encode({ alg: 'none', typ: 'at+jwt' })}.${token.split('.')[1]}.`,
    ],
  ])('401 a token %s', async (_what, change) => {
    expect((await rest('GET', '/balance', { token: change(shop.token) })).status).toBe(401)
  })

  test('401 a token that another key signed', async () => {
    const forged = await new SignJWT({ scope: 'balance', key: 1, kv: 1 })
      .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt' })
      .setSubject(String(shop.merchantId))
      .setIssuedAt()
      .setExpirationTime('1h')
      .sign(new TextEncoder().encode('x'.repeat(32)))
    expect((await rest('GET', '/balance', { token: forged })).status).toBe(401)
  })

  test('the sandbox clock does not move the life of a token', async () => {
    const merchant = await fixture.merchant()
    await fixture.advance(25 * 3_600_000)
    expect((await rest('GET', '/balance', { token: merchant.token })).status).toBe(200)
  })

  test('401 soon after its key was revoked; no payment is taken from then on', async () => {
    const merchant = await fixture.merchant()
    const { pool } = fixture.app.services.database
    const { rows } = await pool.query('SELECT id FROM api_key WHERE merchant_id = $1', [merchant.merchantId])
    expect((await rest('GET', '/balance', { token: merchant.token })).status).toBe(200)
    await revokeApiKey(pool, { merchantId: merchant.merchantId, apiKeyId: rows[0].id })
    expect((await fixture.pay(merchant)).status).toBe(401)
    await eventually(async () =>
      expect((await rest('GET', '/balance', { token: merchant.token })).status).toBe(401),
    )
  })
})

describe('an inactive account', () => {
  test('403 soon, on every path', async () => {
    const merchant = await fixture.merchant()
    await deactivateMerchant(fixture.app.services, merchant.merchantId)
    await eventually(async () =>
      expect((await rest('GET', '/balance', { token: merchant.token })).status).toBe(403),
    )
    for (const [method, path] of guarded)
      expect((await rest(method, path, { token: merchant.token })).status).toBe(403)
  })

  test('no payment is recorded after the deactivation', async () => {
    const merchant = await fixture.merchant()
    await fixture.paid(merchant)
    const before = await fixture.rowCounts()
    await deactivateMerchant(fixture.app.services, merchant.merchantId)
    expect((await fixture.pay(merchant)).status).toBe(403)
    expect(await fixture.rowCounts()).toEqual(before)
  })
})

describe('the whitelist', () => {
  const from = (merchant: TestMerchant, address?: string) =>
    rest('GET', '/balance', {
      token: merchant.token,
      headers: address === undefined ? {} : { 'X-Forwarded-For': address },
    }).then(({ status }) => status)

  test('an empty list lets every address in', async () => {
    expect(await from(shop)).toBe(200)
    expect(await from(shop, '198.51.100.9')).toBe(200)
  })

  test('403 any other address, even with a valid token', async () => {
    const merchant = await fixture.merchant()
    await setWhitelist(merchant, '{192.0.2.7,198.51.100.0/24,2001:db8::/32}')
    await eventually(async () => expect(await from(merchant, '203.0.113.1')).toBe(403))
    expect(await from(merchant)).toBe(403)
    for (const inside of ['192.0.2.7', '::ffff:192.0.2.7', '198.51.100.200', '2001:db8::1'])
      expect(await from(merchant, inside)).toBe(200)
    for (const outside of ['192.0.2.8', '198.51.101.1', '2001:db9::1', 'nonsense'])
      expect(await from(merchant, outside)).toBe(403)
  })

  test('an address that a caller writes in front of the trusted proxy’s entry is not read', async () => {
    const merchant = await fixture.merchant()
    await setWhitelist(merchant, '{192.0.2.7}')
    await eventually(async () => expect(await from(merchant, '192.0.2.7, 203.0.113.1')).toBe(403))
    expect(await from(merchant, '203.0.113.1, 192.0.2.7')).toBe(200)
  })

  test('public paths ignore the whitelist', async () => {
    const merchant = await fixture.merchant()
    const { reference } = await fixture.paid(merchant)
    await setWhitelist(merchant, '{192.0.2.7}')
    expect((await fixture.check(reference)).status).toBe(200)
  })
})

describe('the order of the checks', () => {
  test('401, then inactive, then address, then scope, then 400', async () => {
    const merchant = await fixture.merchant()
    const narrow = await tokenWith(merchant, ['team'])
    const messageOf = async (token: string | undefined) => {
      const { status, body } = await rest('POST', '/pay', { token, body: { amount: 'wrong' } })
      return [status, body['message']] as const
    }
    const [wrong] = await messageOf('nonsense')
    expect(wrong).toBe(401)
    expect((await messageOf(merchant.token))[0]).toBe(400)

    const scope = await messageOf(narrow)
    expect(scope).toEqual([403, expect.stringContaining('pay')])

    await setWhitelist(merchant, '{192.0.2.7}')
    const address = await eventually(async () => {
      const seen = await messageOf(narrow)
      expect(seen[1]).not.toBe(scope[1])
      return seen
    })
    expect(address).toEqual([403, expect.stringContaining('whitelist')])

    await deactivateMerchant(fixture.app.services, merchant.merchantId)
    const inactive = await eventually(async () => {
      const seen = await messageOf(narrow)
      expect(seen[1]).not.toBe(address[1])
      return seen
    })
    expect(inactive).toEqual([403, expect.stringContaining('inactive')])
  })

  test('400 comes before 409', async () => {
    const { reference } = await fixture.paid(shop)
    expect((await fixture.pay(shop, { reference, amount: 1 })).status).toBe(400)
  })

  test('405 and 404 of the router need no token', async () => {
    expect((await rest('GET', '/pay')).status).toBe(405)
    expect((await rest('GET', '/nothing-here')).status).toBe(404)
  })
})

describe('a row of another merchant', () => {
  test('is 404, never 403, and appears in no list', async () => {
    const stranger = await fixture.merchant()
    const { transaction_id: id, reference } = await fixture.paid(shop)
    const { status, body } = await rest('GET', `/transactions/${String(id)}`, stranger)
    expect(status).toBe(404)
    expect(JSON.stringify(body)).not.toContain(String(reference))
    for (const query of ['', `?reference=${String(reference)}`, '?limit=100&status=pending']) {
      const list = await rest('GET', `/transactions${query}`, stranger)
      expect(list.body['data'].transactions).toEqual([])
    }
  })
})

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}

/** Changes a letter in the middle of one part of a token. */
function swapPart(token: string, which: number): string {
  return token
    .split('.')
    .map((part, index) => {
      if (index !== which) return part
      const middle = Math.floor(part.length / 2)
      return part.slice(0, middle) + (part[middle] === 'A' ? 'B' : 'A') + part.slice(middle + 1)
    })
    .join('.')
}
