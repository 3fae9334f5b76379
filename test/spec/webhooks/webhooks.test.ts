import { createHmac } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { startReceiver } from '../../kit/webhooks/receivers.ts'
import type { RestAnswer, TestMerchant } from '../../kit/app.ts'
import { hour, openFixture } from '../../kit/fixture.ts'

const fixture = await openFixture()
const { owner } = fixture.database
let shop: TestMerchant
beforeEach(async () => {
  shop = await fixture.merchant()
})

const wanted = { url: 'https://shop.example/hooks', events: ['payment_received', 'payout_failed'] }
const ask = (method: string, path: string, body?: unknown, headers = {}, merchant = shop) =>
  fixture.rest(method, `/webhooks${path}`, { token: merchant.token, body, headers })
async function registered(body: object = {}, merchant = shop): Promise<RestAnswer['body']> {
  const answer = await ask('POST', '', { ...wanted, ...body }, {}, merchant)
  expect(answer.body).toMatchObject({ success: true })
  return answer.body['data']
}
const fieldsOf = ({ status, body }: RestAnswer) => [
  status,
  ...(body['errors'] ?? []).map(({ field }: { field: string }) => field).toSorted(),
]
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
/** Leaves the state of a process that died after its work and before it kept the answer. */
const forgetAnswer = () => owner.query('UPDATE idempotency_key SET answer = NULL, locked_until = NULL')

describe('POST /webhooks', () => {
  test('201 with the endpoint and its secret, which is stored encrypted only', async () => {
    const { status, body } = await ask('POST', '', { ...wanted, unknown: 1 })
    expect(status).toBe(201)
    expect(body).toEqual({
      success: true,
      request_id: expect.any(String),
      data: {
        id: expect.any(Number),
        ...wanted,
        secret: expect.stringMatching(/^whsec_[0-9A-Za-z+/]{43}=$/),
        is_active: true,
        created_at: time,
      },
    })
    expect(Object.keys(body['data'])).toEqual(['id', 'url', 'events', 'secret', 'is_active', 'created_at'])
    const { rows } = await owner.query(
      "SELECT encode(secret_encrypted, 'escape') AS kept FROM webhook_endpoint",
    )
    for (const { kept } of rows) expect(kept).not.toContain('whsec_')
  })

  test.each<[string, unknown, string[]]>([
    ['nothing', {}, ['events', 'url']],
    ['no event', { ...wanted, events: [] }, ['events']],
    ['an unknown event', { ...wanted, events: ['payment_received', 'rain'] }, ['events[1]']],
    ['the sample, which is no event', { ...wanted, events: ['test'] }, ['events[0]']],
    ['one event in place of a list', { ...wanted, events: 'payment_received' }, ['events']],
    ['no address', { ...wanted, url: 'shop' }, ['url']],
    ['another protocol', { ...wanted, url: 'ftp://shop.example/' }, ['url']],
    ['credentials', { ...wanted, url: 'https://me:pass@shop.example/' }, ['url']],
    ['a private address', { ...wanted, url: 'http://10.1.2.3/' }, ['url']],
    ['the metadata of a cloud', { ...wanted, url: 'http://169.254.169.254/' }, ['url']],
    ['a private address in IPv6', { ...wanted, url: 'http://[::ffff:192.168.1.1]/' }, ['url']],
    ['an address too long', { ...wanted, url: `https://shop.example/${'x'.repeat(2_048)}` }, ['url']],
    ['numbers', { url: 7, events: [7] }, ['events[0]', 'url']],
  ])('400 for %s, naming the field, and no row is kept', async (_what, body, fields) => {
    expect(fieldsOf(await ask('POST', '', body))).toEqual([400, ...fields])
    expect((await ask('GET', '')).body['data']).toEqual([])
  })

  test('an event that is named twice is delivered once; loopback is allowed in the sandbox', async () => {
    const url = 'http://127.0.0.1:8080/hooks'
    const events = ['payment_received', 'payment_received']
    expect(await registered({ url, events })).toMatchObject({ url, events: ['payment_received'] })
  })

  test('of 20 at once 5 get a slot, the others 400; a freed slot can be used again', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask('POST', '', wanted)))
    const refused = answers.map((answer) => fieldsOf(answer).join(' ')).toSorted()
    expect(refused).toEqual([...Array(5).fill('201'), ...Array(15).fill('400 url')])
    const list = (await ask('GET', '')).body['data']
    expect(list).toHaveLength(5)
    await ask('DELETE', `/${list[2].id}`)
    await registered()
    expect(fieldsOf(await ask('POST', '', wanted))).toEqual([400, 'url'])
  })

  test('one Idempotency-Key is one endpoint and one secret, kept encrypted, after any crash', async () => {
    const headers = { 'Idempotency-Key': 'hook' }
    const first = await ask('POST', '', wanted, headers)
    const replayed = await ask('POST', '', wanted, headers)
    expect(replayed.body).toEqual(first.body)
    expect(replayed.headers.get('idempotent-replayed')).toBe('true')
    const kept = await owner.query("SELECT encode(answer, 'escape') AS text FROM idempotency_key")
    expect(kept.rows.map(({ text }) => text).join()).not.toContain('whsec_')
    await forgetAnswer()
    const again = await ask('POST', '', wanted, headers)
    expect(again.body['data']).toEqual(first.body['data'])
    expect((await ask('GET', '')).body['data']).toHaveLength(1)
    expect((await ask('POST', '', { ...wanted, url: 'https://else.example' }, headers)).status).toBe(400)
  })
})

describe('GET /webhooks', () => {
  test('a bare array, newest first, without secrets, byte for byte', async () => {
    const first = await registered()
    const second = await registered({ url: 'https://other.example/', events: ['payout_failed'] })
    const { headers, body } = await ask('GET', '')
    const record = (made: typeof first) => ({
      id: made.id,
      url: made.url,
      events: made.events,
      is_active: true,
      failure_count: 0,
      disabled_at: null,
      last_success_at: null,
      last_failure_at: null,
      created_at: made.created_at,
    })
    expect(JSON.stringify(body['data'])).toBe(JSON.stringify([record(second), record(first)]))
    expect(headers.get('x-total-count')).toBe('2')
    expect(headers.get('link')).toContain('rel="first"')
    expect(JSON.stringify((await ask('GET', `/${first.id}`)).body['data'])).toBe(
      JSON.stringify(record(first)),
    )
    const page = await ask('GET', '?limit=1&offset=1')
    expect(page.body['data'].map(({ id }: { id: number }) => id)).toEqual([first.id])
    expect(fieldsOf(await ask('GET', '?limit=0&offset=-1'))).toEqual([400, 'limit', 'offset'])
  })
})

describe('PUT /webhooks/{id}', () => {
  test('changes the given fields, and answers with the record', async () => {
    const { id, ...made } = await registered()
    const put = async (body: object) => (await ask('PUT', `/${id}`, body)).body['data']
    expect(await put({})).toMatchObject({ url: made.url, events: made.events, is_active: true })
    expect(await put({ url: 'https://new.example/#part' })).toMatchObject({
      url: 'https://new.example/',
      events: made.events,
    })
    expect(await put({ events: ['payout_completed'] })).toMatchObject({
      url: 'https://new.example/',
      events: ['payout_completed'],
    })
    const off = await put({ is_active: false })
    expect(off).toMatchObject({ is_active: false, disabled_at: null, events: ['payout_completed'] })
    expect(off).not.toHaveProperty('secret')
    expect((await ask('GET', `/${id}`)).body['data']).toEqual(off)
  })

  test('400 names the field and changes nothing', async () => {
    const { id } = await registered()
    const bad = { url: 'http://192.168.0.1/', events: ['payout_completed'], is_active: false }
    expect(fieldsOf(await ask('PUT', `/${id}`, bad))).toEqual([400, 'url'])
    const worse = { url: 'x', events: [], is_active: 'yes' }
    expect(fieldsOf(await ask('PUT', `/${id}`, worse))).toEqual([400, 'events', 'is_active', 'url'])
    expect((await ask('GET', `/${id}`)).body['data']).toMatchObject({ ...wanted, is_active: true })
  })

  test.each([
    ['enabled again', { is_active: true }],
    ['at a new address', { url: 'https://new.example/' }],
  ])('%s it begins anew', async (how, change) => {
    const { id } = await registered()
    const disabled = how === 'enabled again'
    await owner.query(
      `UPDATE webhook_endpoint SET failure_count = 19, paused_until = now() + interval '1 hour',
         is_active = NOT $2, disabled_at = CASE WHEN $2 THEN now() END WHERE id = $1`,
      [id, disabled],
    )
    const { body } = await ask('PUT', `/${id}`, change)
    expect(body['data']).toMatchObject({ is_active: true, failure_count: 0, disabled_at: null })
    // Other changes of a disabled endpoint do not enable it.
    await owner.query(
      'UPDATE webhook_endpoint SET is_active = false, disabled_at = now(), due_at = NULL WHERE id = $1',
      [id],
    )
    const other = await ask('PUT', `/${id}`, { url: 'https://other.example/' })
    expect(other.body['data']).toMatchObject({ is_active: false, disabled_at: time })
  })
})

test('DELETE answers with the envelope alone; then the endpoint is gone', async () => {
  const { id } = await registered()
  const { status, body } = await ask('DELETE', `/${id}`)
  expect([status, body]).toEqual([200, { success: true, request_id: expect.any(String) }])
  const answers = await Promise.all([
    ask('GET', `/${id}`),
    ask('PUT', `/${id}`, { is_active: true }),
    ask('DELETE', `/${id}`),
    ask('POST', `/${id}/test`),
  ])
  expect(answers.map(({ status: refused }) => refused)).toEqual([404, 404, 404, 404])
  expect((await ask('GET', '')).body['data']).toEqual([])
})

test('DELETE that is repeated after a crash under its Idempotency-Key has the first result', async () => {
  const { id } = await registered()
  const remove = (key: string) => ask('DELETE', `/${id}`, undefined, { 'Idempotency-Key': key })
  expect((await remove('one')).status).toBe(200)
  await forgetAnswer()
  expect((await remove('one')).status).toBe(200)
  expect((await remove('other')).status).toBe(404)
})

describe('POST /webhooks/{id}/test', () => {
  const hooks = ({ port }: { port: number }) => `http://127.0.0.1:${port}/hooks`
  const send = async (id: number) => (await ask('POST', `/${id}/test`)).body['data']
  const signed = (secret: string, bytes: Buffer) => createHmac('sha256', secret).update(bytes).digest('hex')

  test('sends a signed sample at once, also to an endpoint that is disabled', async () => {
    const receiver = await startReceiver((response) => response.end('thanks'))
    const { id, secret } = await registered({ url: hooks(receiver) })
    await ask('PUT', `/${id}`, { is_active: false })
    const { status, body } = await ask('POST', `/${id}/test`)
    expect([status, body['data']]).toEqual([
      200,
      { delivered: true, status_code: 200, duration_ms: expect.any(Number) },
    ])
    expect(Object.keys(body['data'])).toEqual(['delivered', 'status_code', 'duration_ms'])
    const [{ headers, body: bytes } = { headers: {}, body: Buffer.alloc(0) }] = receiver.arrived
    const sample = JSON.parse(bytes.toString())
    expect(sample).toEqual({
      id: expect.stringMatching(/^evt_test_\d+$/),
      event: 'test',
      data: { webhook_id: id, message: expect.any(String) },
      timestamp: time,
      merchant_id: shop.merchantId,
      sequence: null,
    })
    expect(headers).toMatchObject({
      'x-service-event': 'test',
      'x-service-signature': signed(secret, bytes),
      'webhook-id': sample.id,
    })
    expect((await ask('GET', `/${id}`)).body['data']).toMatchObject({
      last_success_at: time,
      is_active: false,
    })
  })

  test('200 also where the receiver fails: a delivery, and no failure of the endpoint', async () => {
    const answer = `boom\0${'é'.repeat(2_000)}`
    const receiver = await startReceiver((response) => response.writeHead(500).end(answer))
    const { id } = await registered({ url: hooks(receiver) })
    expect(await send(id)).toEqual({ delivered: false, status_code: 500, duration_ms: expect.any(Number) })
    await ask('PUT', `/${id}`, { url: 'http://127.0.0.1:1/' })
    expect(await send(id)).toEqual({ delivered: false, status_code: null, duration_ms: expect.any(Number) })
    expect((await ask('GET', `/${id}`)).body['data']).toMatchObject({
      failure_count: 0,
      last_success_at: null,
      last_failure_at: time,
    })
    const { rows } = await owner.query(
      `SELECT d.type, d.status, d.attempts_total, a.status_code, a.error, octet_length(a.answer) AS bytes
       FROM webhook_delivery d JOIN webhook_attempt a ON a.delivery_id = d.id WHERE d.endpoint_id = $1
       ORDER BY d.id`,
      [id],
    )
    const dead = { type: 'test', status: 'dead', attempts_total: 1 }
    expect(rows).toEqual([
      { ...dead, status_code: 500, error: null, bytes: expect.any(Number) },
      { ...dead, status_code: null, error: 'connect', bytes: 0 },
    ])
    expect(rows[0].bytes).toBeLessThanOrEqual(2_052)
  })

  test('after a rotation the old secret signs for 24 hours more, and the new one beside it', async () => {
    const receiver = await startReceiver((response) => response.end())
    const { id, secret: old } = await registered({ url: hooks(receiver) })
    const rotate = async (args = '', headers: Record<string, string> = {}) => {
      const query = `mutation { rotateWebhookSecret(id: ${id}${args}) { ... on WebhookSecret { secret
        webhook { secretOverlapsUntil } } } }`
      const response = await fetch(`${fixture.url}/graphql`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${shop.token}`, ...headers },
        body: JSON.stringify({ query }),
      })
      const { data } = await response.json()
      return data.rotateWebhookSecret as { secret: string; webhook: { secretOverlapsUntil: string | null } }
    }
    /** The secrets that a sample is signed with. */
    const signers = async () => {
      await send(id)
      const { headers, body } = receiver.arrived.at(-1) ?? { headers: {}, body: Buffer.alloc(0) }
      return ['x-service-signature', 'x-service-signature-next'].map((name) =>
        all.findIndex((secret) => (headers as Record<string, unknown>)[name] === signed(secret, body)),
      )
    }
    const all = [old]
    const first = await rotate('', { 'Idempotency-Key': 'turn' })
    all.push(first.secret)
    expect(first.webhook.secretOverlapsUntil).toEqual(time)
    expect(await signers()).toEqual([0, 1])
    // Its process died: repeated it is the same rotation.
    await forgetAnswer()
    expect((await rotate('', { 'Idempotency-Key': 'turn' })).secret).toBe(first.secret)
    expect(await signers()).toEqual([0, 1])
    // Another rotation meanwhile replaces the new secret.
    all.push((await rotate()).secret)
    expect(await signers()).toEqual([0, 2])
    await fixture.advance(24 * hour)
    expect(await signers()).toEqual([2, -1])
    all.push((await rotate()).secret, (await rotate(', oldEndsNow: true')).secret)
    expect(await signers()).toEqual([4, -1])
    expect(new Set(all).size).toBe(5)
  })
})

test('403 without the scope, on every route', async () => {
  const { id } = await registered()
  const { body } = await fixture.rest('POST', '/auth', {
    headers: { 'X-API-Key': shop.apiKey, 'X-API-Secret': shop.apiSecret },
    body: { scopes: ['balance', 'settings'] },
  })
  const { token } = body['data']
  const paths = ['POST ', 'GET ', `GET /${id}`, `PUT /${id}`, `DELETE /${id}`, `POST /${id}/test`]
  for (const path of paths) {
    const [method = '', below = ''] = path.split(' ')
    const refused = await fixture.rest(method, `/webhooks${below}`, {
      token,
      body: method === 'GET' ? undefined : wanted,
    })
    expect([refused.status, refused.body['required_scopes']]).toEqual([403, ['webhooks']])
  }
  const roots = [
    '{ webhooks { totalCount } }',
    `{ webhook(id: ${id}) { id } }`,
    '{ events { nodes { id } } }',
    `mutation { removeWebhook(id: ${id}) { __typename } }`,
    `mutation { rotateWebhookSecret(id: ${id}) { __typename } }`,
    `mutation { replayEvents(webhookId: ${id}, from: 1, to: 2) { __typename } }`,
  ]
  for (const root of roots) {
    const { body: refused } = await fixture.graphql(root, {}, token)
    expect(refused.errors[0].extensions).toMatchObject({ code: 'FORBIDDEN', requiredScopes: ['webhooks'] })
  }
})
