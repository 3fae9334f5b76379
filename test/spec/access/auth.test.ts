import { decodeJwt } from 'jose'
import { describe, expect, test } from 'vitest'
import { regenerateApiKey } from '../../../src/identity/keys/api-keys.ts'
import { activateMerchant } from '../../../src/resources/merchants/activate.ts'
import { deactivateMerchant } from '../../../src/resources/merchants/deactivate.ts'
import { startTestApp, type TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { openFixture } from '../../kit/fixture.ts'

const fixture = await openFixture()
const rest = (...call: Parameters<typeof fixture.rest>) => fixture.rest(...call)

const pairOf = ({ apiKey, apiSecret }: TestMerchant) => ({ 'X-API-Key': apiKey, 'X-API-Secret': apiSecret })
const auth = (headers: Record<string, string>, body?: unknown) => rest('POST', '/auth', { headers, body })

describe('POST /auth', () => {
  test('200 a key and its secret give a bearer token', async () => {
    const shop = await fixture.merchant()
    const before = Date.now()
    const { status, body } = await auth(pairOf(shop))
    expect(status).toBe(200)
    expect(body).toMatchObject({ success: true, data: { token_type: 'Bearer', expires_in: 86_400 } })
    const { token, expires_at: expiresAt } = body['data']
    expect(expiresAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    // To the second.
    expect(Date.parse(expiresAt)).toBeGreaterThan(before + 86_400_000 - 1_000)
    expect(Date.parse(expiresAt)).toBeLessThanOrEqual(Date.now() + 86_400_000)
    expect((await rest('GET', '/balance', { token })).status).toBe(200)
  })

  test('an unreadable body is 400, after the credentials were checked and counted', async () => {
    const shop = await fixture.merchant()
    const right = await auth(pairOf(shop), '{"scopes": [')
    expect(right.status).toBe(400)
    expect(right.body).not.toHaveProperty('data')
    const wrong = await auth({ ...pairOf(shop), 'X-API-Secret': 'ms_wrong' }, '{"scopes": [')
    expect(wrong.status).toBe(401)
    const left = (answer: typeof right) => Number(/r=(\d+)/.exec(answer.headers.get('RateLimit') ?? '')?.[1])
    expect(left(wrong)).toBe(left(right) - 1)
  })

  test('the API key begins with mk_ and the secret with ms_', async () => {
    const shop = await fixture.merchant()
    expect(shop.apiKey).toMatch(/^mk_/)
    expect(shop.apiSecret).toMatch(/^ms_/)
  })

  test('by default the token holds pay, deposit and balance for 24 hours', async () => {
    const { body } = await auth(pairOf(await fixture.merchant()), {})
    expect(body['data'].scopes).toEqual(['pay', 'deposit', 'balance'])
    const { exp = 0, iat = 0 } = decodeJwt(body['data'].token)
    expect(exp - iat).toBe(24 * 3_600)
  })

  test('the token is a signed JWT that embeds the requested scopes', async () => {
    const { body } = await auth(pairOf(await fixture.merchant()), {
      scopes: ['balance', 'webhooks', 'balance'],
    })
    expect(body['data'].scopes).toEqual(['balance', 'webhooks'])
    expect(decodeJwt(body['data'].token)).toMatchObject({ scope: 'balance webhooks' })
  })

  test.each([1, 720])('expires_in_hours %i is granted', async (hours) => {
    const { body } = await auth(pairOf(await fixture.merchant()), { expires_in_hours: hours })
    expect(body['data'].expires_in).toBe(hours * 3_600)
  })

  test.each([
    ['0', '{"expires_in_hours": 0}'],
    ['721', '{"expires_in_hours": 721}'],
    ['-1', '{"expires_in_hours": -1}'],
    ['a fraction', '{"expires_in_hours": 1.5}'],
    ['text', '{"expires_in_hours": "24"}'],
    ['a list', '{"expires_in_hours": [24]}'],
    ['beyond every number', '{"expires_in_hours": 1e999}'],
  ])('400 expires_in_hours that is %s', async (_what, body) => {
    const answer = await auth(pairOf(await fixture.merchant()), body)
    expect(answer.status).toBe(400)
    expect(answer.body['errors'].map((problem: { field: string }) => problem.field)).toEqual([
      'expires_in_hours',
    ])
  })

  test.each([
    ['unknown', { scopes: ['pay', 'everything'] }],
    ['an empty list', { scopes: [] }],
    ['text', { scopes: 'pay' }],
    ['an object', { scopes: { pay: true } }],
    ['a list of numbers', { scopes: [1] }],
    ['a list of null', { scopes: [null] }],
  ])('400 scopes that are %s', async (_what, body) => {
    const answer = await auth(pairOf(await fixture.merchant()), body)
    expect(answer.status).toBe(400)
    expect(answer.body['errors'].map((problem: { field: string }) => problem.field)).toEqual(['scopes'])
  })

  test('400 lists both problems at once', async () => {
    const answer = await auth(pairOf(await fixture.merchant()), { scopes: [], expires_in_hours: 0 })
    expect(answer.body['errors']).toHaveLength(2)
  })

  test('403 a scope that the key does not hold is named in required_scopes', async () => {
    const shop = await fixture.merchant()
    await fixture.database.owner.query(`UPDATE api_key SET scopes = '{pay}' WHERE key = $1`, [shop.apiKey])
    const { status, body } = await auth(pairOf(shop), { scopes: ['pay', 'payout'] })
    expect(status).toBe(403)
    expect(body).toMatchObject({ success: false, required_scopes: ['payout'] })
    expect(body['message']).toContain('payout')
  })

  test('401 an unknown key and a wrong secret read the same', async () => {
    const shop = await fixture.merchant()
    const wrong = await auth({ ...pairOf(shop), 'X-API-Secret': `ms_${'x'.repeat(43)}` })
    const unknown = await auth({ ...pairOf(shop), 'X-API-Key': `mk_${'x'.repeat(24)}` })
    const garbage = await auth({ 'X-API-Key': 'what', 'X-API-Secret': 'ever' })
    const nothing = await auth({})
    for (const answer of [wrong, unknown, garbage, nothing]) {
      expect(answer.status).toBe(401)
      expect(answer.body['message']).toBe(wrong.body['message'])
      expect(Object.keys(answer.body).toSorted()).toEqual([
        'code',
        'docs',
        'message',
        'request_id',
        'success',
      ])
    }
  })

  test('401 comes before 400: a caller without a valid key learns nothing about its input', async () => {
    expect((await auth({ 'X-API-Key': 'mk_none' }, { scopes: [] })).status).toBe(401)
  })

  test('401 key and secret in the body are ignored', async () => {
    const { apiKey, apiSecret } = await fixture.merchant()
    expect((await auth({}, { api_key: apiKey, api_secret: apiSecret })).status).toBe(401)
  })

  test('403 the account is inactive, until it is activated', async () => {
    const shop = await fixture.merchant()
    await deactivateMerchant(fixture.app.services, shop.merchantId)
    expect((await auth(pairOf(shop))).status).toBe(403)
    await activateMerchant(fixture.app.services, shop.merchantId)
    await eventually(async () => expect((await auth(pairOf(shop))).status).toBe(200))
    await expect(activateMerchant(fixture.app.services, 999_999)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('403 the address is not on the whitelist', async () => {
    const shop = await fixture.merchant()
    const { owner } = fixture.database
    await owner.query(`UPDATE merchant SET ip_whitelist = '{192.0.2.1}' WHERE id = $1`, [shop.merchantId])
    expect((await auth(pairOf(shop))).status).toBe(403)
  })

  test('regenerating a key ends the old pair and its tokens', async () => {
    const shop = await fixture.merchant()
    const { services } = fixture.app
    const { rows } = await fixture.database.owner.query('SELECT id FROM api_key WHERE key = $1', [
      shop.apiKey,
    ])
    const { key, secret } = await regenerateApiKey(services.database.pool, services.access.master, {
      merchantId: shop.merchantId,
      apiKeyId: rows[0].id,
    })
    expect((await auth(pairOf(shop))).status).toBe(401)
    expect((await fixture.pay(shop)).status).toBe(401)
    const balance = () => rest('GET', '/balance', { token: shop.token })
    await eventually(async () => expect((await balance()).status).toBe(401))
    expect((await auth({ 'X-API-Key': key, 'X-API-Secret': secret.reveal() })).status).toBe(200)
  })
})

describe('POST /auth, 20 requests per 15 minutes', () => {
  test('429 the 21st request of a key, with Retry-After and the RateLimit fields', async () => {
    const shop = await fixture.merchant()
    const wrong = { ...pairOf(shop), 'X-API-Secret': `ms_${'x'.repeat(43)}` }
    // The sign-in of the merchant was the first one; right and wrong secrets count alike.
    const answers = []
    for (let tries = 2; tries <= 20; tries += 1) answers.push(await auth(tries % 2 ? wrong : pairOf(shop)))
    expect(answers.map(({ status }) => status)).toEqual(answers.map((_, i) => (i % 2 ? 401 : 200)))
    expect(answers.at(-1)?.headers.get('RateLimit')).toMatch(/^"auth";r=0;t=\d+$/)

    const over = await auth(pairOf(shop))
    expect(over.status).toBe(429)
    expect(over.body).toMatchObject({ success: false, request_id: over.headers.get('X-Request-Id') })
    expect(Number(over.headers.get('Retry-After'))).toBeGreaterThan(14 * 60)
    expect(Number(over.headers.get('Retry-After'))).toBeLessThanOrEqual(15 * 60)
    expect(over.headers.get('RateLimit-Policy')).toBe('"auth";q=20;w=900')
    expect(over.headers.get('RateLimit')).toMatch(/^"auth";r=0;t=\d+$/)
  })

  test('a key over its limit does not affect other keys or its own tokens', async () => {
    const [busy, calm] = [await fixture.merchant(), await fixture.merchant()]
    for (let tries = 0; tries < 20; tries += 1) await auth(pairOf(busy))
    expect((await auth(pairOf(busy))).status).toBe(429)
    expect((await auth(pairOf(calm))).status).toBe(200)
    expect((await rest('GET', '/balance', { token: busy.token })).status).toBe(200)
  })

  test('21 requests at once: one of them is refused', async () => {
    const shop = await fixture.merchant()
    const answers = await Promise.all(Array.from({ length: 20 }, () => auth(pairOf(shop))))
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(19)
  })
})

test('unknown and missing keys count per client address', async () => {
  const service = await startTestApp({ TRUSTED_PROXIES: '127.0.0.1' })
  try {
    const from = (address: string, key: string) =>
      service.rest('POST', '/auth', { headers: { 'X-Forwarded-For': address, 'X-API-Key': key } })
    for (let tries = 0; tries < 20; tries += 1)
      expect((await from('192.0.2.7', `mk_${tries}`)).status).toBe(401)
    expect((await from('192.0.2.7', 'mk_other')).status).toBe(429)
    expect((await from('::ffff:192.0.2.7', '')).status).toBe(429)
    expect((await from('192.0.2.8', 'mk_other')).status).toBe(401)
  } finally {
    await service.close()
  }
})
