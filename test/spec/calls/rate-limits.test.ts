import { isDeepStrictEqual } from 'node:util'
import { createClient } from 'graphql-ws'
import { describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { routes } from '../../../src/http/rest/routes.ts'
import { limits } from '../../../src/shared/limits.ts'
import type { RestAnswer, TestMerchant } from '../../kit/app.ts'
import { openFixture } from '../../kit/fixture.ts'

// The general limits of requests (429, its headers, the order of the checks; see docs/design/rules.md).

const [writes, reads, perAddress] = [5, 8, 3]
const fixture = await openFixture({
  RATE_LIMIT_WRITES: String(writes),
  RATE_LIMIT_READS: String(reads),
  RATE_LIMIT_PUBLIC: String(perAddress),
  TRUSTED_PROXIES: '127.0.0.1',
})

async function tokenOf(shop: TestMerchant): Promise<string> {
  const headers = { 'X-API-Key': shop.apiKey, 'X-API-Secret': shop.apiSecret }
  const { body } = await fixture.rest('POST', '/auth', { headers, body: { scopes: ['pay'] } })
  return body['data'].token as string
}
const fund = 'mutation { sandboxFund(amount: 1) }'
/** The share of a merchant's limit that one token may use. */
const ofToken = (most: number) => Math.ceil(most * limits.tokenShare)
const many = <T>(count: number, ask: () => Promise<T>) => Promise.all(Array.from({ length: count }, ask))

/**
 * Asks 40 times at once. @returns the passed and the refused answers, and the most that may have passed by
 * then
 */
async function rush(perSecond: number, ask: () => Promise<RestAnswer>) {
  const begun = performance.now()
  const answers = await many(40, ask)
  const most = perSecond + Math.ceil(((performance.now() - begun) / 1_000) * perSecond)
  const refused = answers.filter(({ status }) => status === 429)
  return { passed: answers.filter(({ status }) => status !== 429), refused, most }
}

describe('a merchant', () => {
  test('may write a limited number of times a second, over both APIs and all tokens', async () => {
    const shop = await fixture.merchant()
    const other = await tokenOf(shop)
    let round = 0
    const { passed, refused, most } = await rush(writes, () => {
      round += 1
      return round % 2 ? fixture.pay({ token: other }) : fixture.graphql(fund, {}, shop.token)
    })
    expect(passed.length).toBeGreaterThanOrEqual(writes)
    expect(passed.length).toBeLessThanOrEqual(most)
    expect(refused.length).toBe(40 - passed.length)
  })

  test('has less with one token, and reads so in the headers; its other tokens go on', async () => {
    const shop = await fixture.merchant()
    const other = await tokenOf(shop)
    const { passed, refused, most } = await rush(ofToken(writes), () => fixture.pay(shop))
    expect(await fixture.pay({ token: other })).not.toMatchObject({ status: 429 })
    expect(passed.length).toBeGreaterThanOrEqual(ofToken(writes))
    expect(passed.length).toBeLessThanOrEqual(most)
    expect(refused.length).toBe(40 - passed.length)
    const ofOne = `"token-writes";q=${ofToken(writes)};w=1`
    for (const { headers } of passed) {
      expect(headers.get('ratelimit-policy')).toBe(`${ofOne}, "writes";q=${writes};w=1`)
      expect(headers.get('ratelimit')).toMatch(/^"token-writes";r=\d;t=1, "writes";r=\d;t=1$/)
    }
    for (const { headers } of refused) {
      expect(headers.get('ratelimit-policy')).toContain(ofOne)
      expect(headers.get('ratelimit')).toMatch(/;r=0;t=1$/)
    }
    for (const { headers } of refused) expect(headers.get('retry-after')).toBe('1')
    const reason = (body: RestAnswer['body']) => String(body.errors?.[0].message ?? body.message)
    for (const { body } of refused) expect(reason(body)).toMatch(/too many/i)
  })

  test('is counted over all nodes', async () => {
    const [shop, other] = [await fixture.merchant(), await fixture.sibling()]
    let round = 0
    const { passed, refused, most } = await rush(ofToken(writes), async () => {
      round += 1
      if (round % 2) return fixture.pay(shop)
      const { status, headers } = await fetch(`${other}/merchant/api/pay`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${shop.token}` },
      })
      return { status, headers, body: null }
    })
    expect(passed.length).toBeGreaterThanOrEqual(ofToken(writes))
    expect(passed.length).toBeLessThanOrEqual(most)
    expect(refused.length).toBe(40 - passed.length)
  })

  test('still reads while it may not write, and another merchant is not affected', async () => {
    const [shop, neighbour] = [await fixture.merchant(), await fixture.merchant()]
    const [burst] = await Promise.all([
      rush(writes, () => fixture.pay(shop)),
      fixture.paid(neighbour),
      fixture.available(shop),
    ])
    expect(burst.refused.length).toBeGreaterThan(0)
    const list = () => fixture.rest('GET', '/transactions', { token: shop.token })
    const reading = await rush(reads, list)
    expect(reading.passed.length).toBeLessThanOrEqual(reading.most)
    expect(reading.refused.length).toBeGreaterThan(0)
  })

  test('gets 401 and 403 before 429, and 429 before 400; nothing is written', async () => {
    const shop = await fixture.merchant()
    const narrow = await fixture.rest('POST', '/auth', {
      headers: { 'X-API-Key': shop.apiKey, 'X-API-Secret': shop.apiSecret },
      body: { scopes: ['balance'] },
    })
    const before = await fixture.rowCounts()
    const wrong = { token: shop.token, body: { amount: 'much' } }
    const [burst, stranger, lacking] = await Promise.all([
      rush(writes, () => fixture.rest('POST', '/pay', wrong)),
      many(10, () => fixture.rest('POST', '/pay', { ...wrong, token: 'none' })),
      many(10, () => fixture.rest('POST', '/pay', { ...wrong, token: narrow.body['data'].token as string })),
    ])
    expect(new Set(burst.passed.map(({ status }) => status))).toEqual(new Set([400]))
    expect(burst.refused.length).toBeGreaterThan(0)
    expect(new Set(stranger.map(({ status }) => status))).toEqual(new Set([401]))
    expect(new Set(lacking.map(({ status }) => status))).toEqual(new Set([403]))
    expect(await fixture.rowCounts()).toEqual(before)
  })

  test('is counted on a WebSocket too', async () => {
    const shop = await fixture.merchant()
    const client = createClient({
      url: fixture.url.replace('http', 'ws') + '/graphql',
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${shop.token}` },
    })
    const ask = async () => {
      for await (const result of client.iterate({ query: fund })) return result
      return null
    }
    const results = await Promise.allSettled(Array.from({ length: 40 }, ask))
    await client.dispose()
    const refused = results.filter(({ status }) => status === 'rejected')
    expect(JSON.stringify(refused)).toContain('RATE_LIMITED')
    expect(refused.length).toBeGreaterThan(0)
    expect(refused.length).toBeLessThanOrEqual(40 - ofToken(writes))
  })
})

describe('an address', () => {
  const from = (address: string, path = '/payment/status/nothing') =>
    fixture.rest('GET', path, { headers: { 'X-Forwarded-For': address } })
  const statuses = (answers: RestAnswer[]) => answers.map(({ status }) => status).toSorted((a, b) => a - b)

  test('may call a public route so often a minute; another address or route has its own count', async () => {
    const answers = await many(perAddress + 2, () => from('198.51.100.1'))
    expect(statuses(answers)).toEqual([404, 404, 404, 429, 429])
    const last = answers.find(({ status }) => status === 429)
    expect(last?.headers.get('ratelimit-policy')).toBe(`"public";q=${perAddress};w=60`)
    expect(last?.headers.get('ratelimit')).toMatch(/^"public";r=0;t=\d+$/)
    expect(Number(last?.headers.get('retry-after'))).toBeLessThanOrEqual(60)
    expect(await from('198.51.100.2')).toMatchObject({ status: 404 })
    expect(await from('198.51.100.1', '/status')).toMatchObject({ status: 200 })
  })

  test('of IPv6 is its network of 64 bits', async () => {
    const network = Array.from({ length: 5 }, (_, host) => from(`2001:db8:7:1:${host}::${host}`))
    expect(statuses(await Promise.all(network))).toEqual([404, 404, 404, 429, 429])
    expect(await from('2001:db8:7:2::1')).toMatchObject({ status: 404 })
  })

  test('without a token has a limit over GraphQL', async () => {
    const ask = () => fixture.graphql('{ serviceStatus { status } }')
    expect(statuses(await many(perAddress + 1, ask))).toEqual([200, 200, 200, 429])
  })
})

test('every answer of a limited route gives the remaining count, errors included', async () => {
  const shop = await fixture.merchant()
  const headers = { 'X-API-Key': shop.apiKey, 'X-API-Secret': shop.apiSecret }
  const none = await fixture.rest('POST', '/auth', { headers, body: { scopes: ['pay'] } })
  const narrow = none.body['data'].token as string
  const large = { headers, body: { scopes: 'x'.repeat(200_000) } }
  // Load balancers call the status route without a limit.
  const limited = routes.filter(({ path }) => path !== '/status')
  const requests = limited.flatMap(({ method, path, hasOwnLimit }) =>
    (hasOwnLimit
      ? [{}, { headers }, { headers, body: '{' }, { headers, body: { scopes: ['none'] } }, large]
      : [{}, { token: 'none' }, { token: narrow }, { token: shop.token }]
    ).map((options) => ({ method, path: path.replace(/\{\w+\}/, '1'), options })),
  )
  const withoutHeaders = []
  const seen = new Set<number>()
  for (const { method, path, options } of requests) {
    const answer = await fixture.rest(method, path, options)
    seen.add(answer.status)
    const [policy, left] = [answer.headers.get('ratelimit-policy'), answer.headers.get('ratelimit')]
    const named = (text: string | null, form: RegExp) =>
      text?.split(', ').map((part) => form.exec(part)?.[1] ?? `not ${part}`)
    const found = named(policy, /^"([\w-]+)";q=\d+;w=\d+$/)
    if (!found || !isDeepStrictEqual(found, named(left, /^"([\w-]+)";r=\d+;t=\d+$/)))
      withoutHeaders.push({ method, path, status: answer.status, policy, left })
  }
  expect(withoutHeaders).toEqual([])
  expect([...seen].toSorted((a, b) => a - b)).toEqual(expect.arrayContaining([200, 400, 401, 403, 413]))
})
