import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { limits } from '../../../src/shared/limits.ts'
import type { RestAnswer } from '../../kit/app.ts'
import { openFixture } from '../../kit/fixture.ts'

const fixture = await openFixture()
const shop = await fixture.merchant()
const rest = (...call: Parameters<typeof fixture.rest>) => fixture.rest(...call)
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** One answer of each status that a small request can get. */
const everyKind: readonly [status: number, ask: () => Promise<RestAnswer>][] = [
  [200, () => rest('GET', '/status')],
  [202, () => fixture.pay(shop)],
  [400, () => fixture.pay(shop, { amount: 1 })],
  [401, () => rest('GET', '/balance')],
  [404, () => rest('GET', '/nothing-here')],
  [404, () => fixture.check('nobody-knows')],
  [405, () => rest('DELETE', '/pay')],
  [
    415,
    () => rest('POST', '/pay', { token: shop.token, headers: { 'Content-Type': 'text/plain' }, body: '{}' }),
  ],
]

describe('every answer', () => {
  test.each(everyKind)('%i has the envelope and its headers', async (status, ask) => {
    const answer = await ask()
    expect(answer.status).toBe(status)
    expect(answer.body['success']).toBe(status < 400)
    expect(answer.body['request_id']).toMatch(uuid)
    expect(answer.headers.get('X-Request-Id')).toBe(answer.body['request_id'])
    expect(answer.headers.get('X-API-Version')).toBe('1.0.0')
    expect(answer.headers.get('Content-Type')).toMatch(/^application\/json/)
    expect(answer.body).toHaveProperty(status < 400 ? 'data' : 'message')
    expect(answer.body['message'] ?? 'A sentence.').toMatch(/^\S.*\.$/)
  })

  test('each has a request id of its own', async () => {
    const [one, two] = [await rest('GET', '/status'), await rest('GET', '/status')]
    expect(one.body['request_id']).not.toBe(two.body['request_id'])
  })

  test.each(['0191d3f0-aaaa-7bbb-8ccc-0123456789ab', '0191D3F0-AAAA-7BBB-8CCC-0123456789AB'])(
    'a caller’s own X-Request-Id that is a UUID is kept: %s',
    async (id) => {
      for (const path of ['/status', '/balance', '/nothing-here']) {
        const answer = await rest('GET', path, { headers: { 'X-Request-Id': id } })
        expect(answer.headers.get('X-Request-Id')).toBe(id)
        expect(answer.body['request_id']).toBe(id)
      }
    },
  )

  test.each(['my-id', '0191d3f0-aaaa-7bbb-8ccc', '', '0191d3f0aaaa7bbb8ccc0123456789ab'])(
    'a caller’s own X-Request-Id that is no UUID is replaced: %j',
    async (id) => {
      const answer = await rest('GET', '/status', { headers: { 'X-Request-Id': id } })
      expect(answer.body['request_id']).toMatch(uuid)
      expect(answer.headers.get('X-Request-Id')).toBe(answer.body['request_id'])
    },
  )

  test('the bare answer of a payment status has the same headers', async () => {
    const { reference } = await fixture.paid(shop)
    const { headers, body } = await fixture.check(reference)
    expect(body).not.toHaveProperty('success')
    expect(headers.get('X-Request-Id')).toMatch(uuid)
    expect(headers.get('X-API-Version')).toBe('1.0.0')
  })

  test.each([
    ['POST', '/auth', 'Authenticate'],
    ['GET', '/status', 'ServiceStatus'],
    ['GET', '/payment/status/x', 'PaymentStatus'],
    ['POST', '/pay', 'CollectPayment'],
    ['GET', '/balance', 'Balance'],
    ['GET', '/transactions', 'Transactions'],
    ['GET', '/transactions/1', 'Transaction'],
  ])('%s %s names the GraphQL operation %s', async (method, path, operation) => {
    const { headers } = await rest(method, path, { token: shop.token })
    expect(headers.get('X-GraphQL-Operation')).toBe(operation)
  })

  test('a path without an operation names none', async () => {
    expect((await rest('GET', '/nothing-here')).headers.has('X-GraphQL-Operation')).toBe(false)
  })

  test('no answer is cached', async () => {
    expect((await rest('GET', '/status')).headers.get('Cache-Control')).toContain('no-store')
  })
})

describe('paths and methods', () => {
  test.each([
    '',
    '/',
    '/nothing',
    '/pay/',
    '/pay/1',
    '/payment',
    '/payment/status',
    '/transactions/1/2',
    '/Pay',
  ])('404 %s', async (path) => {
    const { status, body } = await rest('GET', path, { token: shop.token })
    expect(status).toBe(404)
    expect(body).toMatchObject({ success: false, message: expect.any(String) })
  })

  test.each([
    ['GET', '/auth', ['POST']],
    ['POST', '/status', ['GET', 'HEAD']],
    ['POST', '/payment/status/x', ['GET', 'HEAD', 'OPTIONS']],
    ['GET', '/pay', ['POST']],
    ['PUT', '/pay', ['POST']],
    ['PATCH', '/pay', ['POST']],
    ['OPTIONS', '/pay', ['POST']],
    ['POST', '/balance', ['GET', 'HEAD']],
    ['DELETE', '/transactions', ['GET', 'HEAD']],
    ['PUT', '/transactions/1', ['GET', 'HEAD']],
  ])('405 %s %s says what is allowed', async (method, path, allowed) => {
    const { status, headers, body } = await rest(method, path, { token: shop.token })
    expect(status).toBe(405)
    expect(headers.get('Allow')?.split(', ')).toEqual(allowed)
    expect(body['success']).toBe(false)
  })

  test('HEAD answers like GET, without a body', async () => {
    const response = await fetch(`${fixture.url}/merchant/api/status`, { method: 'HEAD' })
    expect(response.status).toBe(200)
    expect(response.headers.get('X-Request-Id')).toMatch(uuid)
    expect(await response.text()).toBe('')
  })
})

describe('bodies', () => {
  const post = (body: string | Uint8Array, headers: Record<string, string> = {}) =>
    fetch(`${fixture.url}/merchant/api/pay`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${shop.token}`, 'Content-Type': 'application/json', ...headers },
      body: body as string,
    }).then(async (response) => ({ status: response.status, text: await response.text() }))

  const tooLarge = JSON.stringify({ description: 'x'.repeat(limits.bodyMaxBytes) })

  test('413 a body with too large a length', async () => {
    const { status, text } = await post(tooLarge)
    expect(status).toBe(413)
    expect(JSON.parse(text)).toMatchObject({ success: false })
  })

  test('413 a body in chunks that grows too large', async () => {
    const status = await new Promise((resolve, reject) => {
      const sent = request(
        `${fixture.url}/merchant/api/pay`,
        {
          method: 'POST',
          headers: { Authorization: `Bearer ${shop.token}`, 'Content-Type': 'application/json' },
        },
        (response) => resolve(response.resume().statusCode),
      )
      sent.on('error', reject)
      for (let part = 0; part < 11; part += 1) sent.write('x'.repeat(limits.bodyMaxBytes / 10))
      sent.end()
    })
    expect(status).toBe(413)
  })

  test('a body of exactly the limit is read', async () => {
    const around = JSON.stringify({ record: '' }).length
    expect((await post(JSON.stringify({ record: 'x'.repeat(limits.bodyMaxBytes - around) }))).status).toBe(
      400,
    )
  })

  test('401 comes before 413', async () => {
    expect((await post(tooLarge, { Authorization: 'Bearer none' })).status).toBe(401)
  })

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/xml',
    'text/json',
  ])('415 %s', async (type) => {
    expect((await post('{}', { 'Content-Type': type })).status).toBe(415)
  })

  test('415 a compressed body', async () => {
    expect((await post('{}', { 'Content-Encoding': 'gzip' })).status).toBe(415)
  })

  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'APPLICATION/JSON',
    'application/vnd.x+json',
  ])('%s is JSON', async (type) => {
    expect((await post('{}', { 'Content-Type': type })).status).toBe(400)
  })

  test.each([
    ['nothing closed', '{'],
    ['a trailing comma', '{"amount": 1,}'],
    ['single quotes', "{'amount': 1}"],
    ['NaN', '{"amount": NaN}'],
    ['a number of another base', '{"amount": 0x10}'],
    ['two values', '{} {}'],
    ['only spaces', '   '],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ])('400 malformed JSON: %s', async (_what, body) => {
    const { status, text } = await post(body)
    expect(status).toBe(400)
    expect(JSON.parse(text)).toMatchObject({ success: false, message: expect.stringContaining('JSON') })
  })

  test.each(['[]', '[{}]', 'null', 'true', '1', '"text"'])(
    '400 a body that is no object: %s',
    async (body) => {
      expect((await post(body)).status).toBe(400)
    },
  )

  test('400 a missing body names the missing fields', async () => {
    const { status, body } = await rest('POST', '/pay', { token: shop.token })
    expect(status).toBe(400)
    expect(body['errors'].map(({ field }: { field: string }) => field)).toEqual([
      'amount',
      'customer_phone',
      'payment_method',
    ])
  })

  test('400 lists each problem with its field, beside the message', async () => {
    const { body } = await fixture.pay(shop, { amount: 'a lot', currency: 'EUR' })
    expect(body['errors']).toHaveLength(2)
    for (const problem of body['errors'])
      expect(problem).toEqual({ field: expect.any(String), message: expect.any(String) })
    expect(body['message']).toEqual(expect.any(String))
  })

  test('no error reveals internals', async () => {
    for (const [, ask] of everyKind) {
      const text = JSON.stringify((await ask()).body)
      expect(text).not.toMatch(/node_modules|\.ts\b|prisma|postgres|SELECT|stack|undefined|\[object/i)
    }
  })
})
