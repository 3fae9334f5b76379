import { describe, expect, test } from 'vitest'
import { many } from '../../kit/at-once.ts'
import { openFixture } from '../../kit/fixture.ts'

// A checkout page of any origin polls the status of its payment; browsers ask for leave first.

const publicMax = 40
const fixture = await openFixture({ TRUSTED_PROXIES: '127.0.0.1', RATE_LIMIT_PUBLIC: String(publicMax) })
const shop = await fixture.merchant()
const { reference } = await fixture.paid(shop)
const path = `/payment/status/${String(reference)}`
const origin = { Origin: 'https://shop.example.ml' }
const preflight = {
  ...origin,
  'Access-Control-Request-Method': 'GET',
  'Access-Control-Request-Headers': 'authorization,content-type,traceparent',
}

/** The headers of an answer that let a page read the answer. */
const leaveOf = (headers: Headers) =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')))
const namesIn = (list: string | undefined) => list?.toLowerCase().split(', ') ?? []

test('a preflight is answered with the methods and headers that a page may use', async () => {
  const { status, headers, body } = await fixture.rest('OPTIONS', path, { headers: preflight })
  expect([status, body]).toEqual([204, {}])
  const leave = leaveOf(headers)
  expect(leave['access-control-allow-origin']).toBe('*')
  expect(namesIn(leave['access-control-allow-methods'])).toEqual(['get', 'head', 'options'])
  // The star allows every header but `Authorization`.
  expect(namesIn(leave['access-control-allow-headers'])).toEqual(
    expect.arrayContaining(['authorization', 'content-type', '*']),
  )
  expect(leave['access-control-max-age']).toBe('86400')
  expect(headers.get('X-Request-Id')).toMatch(/^[\da-f-]{36}$/)
})

test.each([
  ['without an origin', {}],
  ['without the method that is meant', origin],
])('OPTIONS %s names the methods, and is no preflight', async (_what, sent) => {
  const { status, headers } = await fixture.rest('OPTIONS', path, { headers: sent })
  expect([status, headers.get('Allow')]).toEqual([204, 'GET, HEAD, OPTIONS'])
  expect(headers.get('Access-Control-Allow-Methods')).toBe(null)
})

/** The answer to a page at an address that has asked too often. */
async function limited() {
  const headers = { ...origin, 'X-Forwarded-For': '198.51.100.1' }
  const answers = await many(publicMax + 1, () => fixture.rest('GET', path, { headers }))
  return answers.find(({ status }) => status === 429) ?? fixture.check(reference)
}

describe('a page reads', () => {
  test.each([
    ['the status', 200, () => fixture.rest('GET', path, { headers: origin })],
    ['its head', 200, () => fixture.rest('HEAD', path, { headers: origin })],
    ['an unknown reference', 404, () => fixture.check('unknown')],
    ['a wrong parameter', 400, () => fixture.check(reference, '?merchant_id=x')],
    ['a wrong method', 405, () => fixture.rest('POST', path, { headers: origin })],
    ['too many questions', 429, limited],
  ])('%s: %i', async (_what, status, ask) => {
    const { status: answered, headers } = await ask()
    expect(answered).toBe(status)
    const leave = leaveOf(headers)
    expect(leave['access-control-allow-origin']).toBe('*')
    expect(namesIn(leave['access-control-expose-headers'])).toEqual(
      expect.arrayContaining(['retry-after', 'ratelimit', 'ratelimit-policy', 'x-request-id']),
    )
    expect(headers.has('Retry-After')).toBe(status === 429)
  })
})

test.each(['/pay', '/balance', '/status', '/auth', '/transactions/1', '/exports/payouts.csv', '/nothing'])(
  'no page of another origin may use %s',
  async (other) => {
    for (const method of ['OPTIONS', 'GET', 'POST']) {
      const { headers } = await fixture.rest(method, other, { headers: preflight })
      expect(leaveOf(headers)).toEqual({})
    }
  },
)

test('no page of another origin may use GraphQL', async () => {
  const answer = await fetch(`${fixture.url}/graphql`, { method: 'OPTIONS', headers: preflight })
  expect(leaveOf(answer.headers)).toEqual({})
})
