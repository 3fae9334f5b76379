import { once } from 'node:events'
import { Agent, type IncomingMessage, request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { startTestApp } from '../kit/app.ts'

// The offers and the notations that HTTP allows in a request change no answer.

const service = await startTestApp()
const shop = await service.merchant()
afterAll(() => service.close())
const { hostname, port } = new URL(service.url)

interface RawAnswer {
  status: number
  body: unknown
}

/** Sends the bytes of a request on a connection of its own. */
async function send(bytes: string): Promise<RawAnswer> {
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  const parts: Buffer[] = []
  socket.on('data', (part) => parts.push(part))
  socket.write(bytes)
  await once(socket, 'close')
  const answer = Buffer.concat(parts).toString('utf8')
  const [head = '', body = ''] = answer.split('\r\n\r\n', 2)
  const text = /\r\ntransfer-encoding: chunked/i.test(head) ? unchunked(answer) : body
  return { status: Number(head.slice(9, 12)), body: /json/.test(head) ? JSON.parse(text) : text }
}

/** The body of an answer that came as one chunk. */
const unchunked = (answer: string) => answer.split('\r\n').at(-4) ?? ''

function request(start: string, { headers = [], body = '' }: { headers?: string[]; body?: string } = {}) {
  const all = [
    `${start} HTTP/1.1`,
    'Host: x',
    `Authorization: Bearer ${shop.token}`,
    ...(body ? ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`] : []),
    ...headers,
  ]
  return `${all.join('\r\n')}\r\n\r\n${body}`
}
const last = { headers: ['Connection: close'] }

/** The default of Java's HttpClient on plain HTTP, and that of Apache's on a connection without TLS. */
const upgrades: Readonly<Record<string, string[]>> = {
  'to HTTP/2, as Java’s client offers it': [
    'Connection: Upgrade, HTTP2-Settings',
    'HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA',
    'Upgrade: h2c',
  ],
  'to TLS, as Apache’s client offers it': ['Connection: Upgrade', 'Upgrade: TLS/1.2'],
  'to an unknown protocol': ['Connection: upgrade', 'Upgrade: foo/9, bar'],
}

/** Asks on the connection of the agent, as clients do that keep it. */
async function ask(agent: Agent, path: string, headers: string[], body?: string): Promise<RawAnswer> {
  const named = headers.flatMap((line) => line.split(': ', 2))
  const sent = httpRequest(`${service.url}${path}`, {
    agent,
    method: body === undefined ? 'GET' : 'POST',
    headers: ['Host', 'x', 'Authorization', `Bearer ${shop.token}`, ...named].concat(
      body === undefined ? [] : ['Content-Type', 'application/json', 'Content-Length', `${body.length}`],
    ),
  })
  sent.end(body)
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  const text = (await answer.toArray()).join('')
  const isJson = answer.headers['content-type']?.includes('json') === true
  return { status: answer.statusCode ?? 0, body: isJson ? JSON.parse(text) : text }
}

describe.each(Object.entries(upgrades))('an offer to upgrade %s', (name, headers) => {
  test('is ignored: a payment, its status and GraphQL are answered on one connection', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const reference = `order-${upgrades[name]?.at(-1)?.length}`
    const payment = { amount: 500, customer_phone: '70090001', payment_method: 'OperatorA', reference }
    const paid = await ask(agent, '/merchant/api/pay', headers, JSON.stringify(payment))
    expect(paid).toMatchObject({ status: 202, body: { success: true, data: { reference } } })
    const status = `/merchant/api/payment/status/${reference}?merchant_id=${shop.merchantId}`
    expect(await ask(agent, status, headers)).toMatchObject({ status: 200, body: { state: 'pending' } })
    const query = JSON.stringify({ query: '{ balance { currency } }' })
    const balance = { status: 200, body: { data: { balance: { currency: 'XOF' } } } }
    expect(await ask(agent, '/graphql', headers, query)).toMatchObject(balance)
    expect(await ask(agent, '/readyz', headers)).toMatchObject({ status: 200 })
    const sockets = Object.values(agent.freeSockets).flat()
    agent.destroy()
    expect(sockets).toHaveLength(1)
  })
})

describe('an offer of a WebSocket', () => {
  const offer = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ]

  test('is ignored at every path but that of GraphQL', async () => {
    const closing = [...offer.slice(1), 'Connection: Upgrade, close']
    const balance = await send(request('GET /merchant/api/balance', { headers: closing }))
    const unknown = await send(request('GET /merchant/api/nowhere', { headers: closing }))
    expect(balance).toMatchObject({ status: 200, body: { success: true } })
    expect(unknown).toMatchObject({ status: 404, body: { success: false } })
  })

  test('is ignored with another method than GET', async () => {
    const answer = await send(
      request('POST /graphql', {
        headers: [...offer.slice(1), 'Connection: Upgrade, close'],
        body: JSON.stringify({ query: '{ balance { currency } }' }),
      }),
    )
    expect(answer).toMatchObject({ status: 200, body: { data: { balance: { currency: 'XOF' } } } })
  })

  test('is taken at that path, also with a query', async () => {
    const socket = new WebSocket(`${service.url}/graphql?from=dashboard`, 'graphql-transport-ws')
    await once(socket, 'open')
    expect(socket.protocol).toBe('graphql-transport-ws')
    socket.close()
    await once(socket, 'close')
  })
})

describe('a request that names the whole address', () => {
  test.each([
    ['GET http://x/livez', 200],
    ['GET HTTP://x/readyz', 200],
    ['GET https://shop.example:8443/merchant/api/balance', 200],
    ['GET http://x/graphql?query=%7Bbalance%7Bcurrency%7D%7D', 200],
    ['GET http://x/merchant/api/nowhere', 404],
    ['GET http://x', 200],
    ['GET http://x?from=proxy', 200],
  ])('%s: %i', async (start, status) => {
    const answer = await send(request(start, last))
    expect(answer.status).toBe(status)
  })

  test('pays once, as it does by its path', async () => {
    const body = JSON.stringify({
      query: `mutation { collectPayment(input: {
        amount: 500, customerPhone: "70110001", paymentMethod: OperatorA, reference: "whole"
      }) { ... on PaymentInitiation { reference } ... on Refusal { code } } }`,
    })
    const whole = await send(request('POST http://x/graphql', { body, ...last }))
    const byPath = await send(request('POST /graphql', { body, ...last }))
    expect([whole, byPath]).toMatchObject([
      { body: { data: { collectPayment: { reference: 'whole' } } } },
      { body: { data: { collectPayment: { code: 'DUPLICATE_REFERENCE' } } } },
    ])
  })
})

describe('other parts of HTTP', () => {
  test.each(['GET /merchant/api/balance', 'GET /graphql?query=%7B__typename%7D', 'GET /livez'])(
    '%s with an expectation that the service does not know: the usual answer',
    async (start) => {
      const plain = await send(request(start, last))
      const answer = await send(request(start, { headers: ['Expect: x', 'Connection: close'] }))
      expect(answer.status).toBe(200)
      expect(Object.keys(answer.body as object)).toEqual(Object.keys(plain.body as object))
    },
  )

  test.each(['OPTIONS *', 'GET *'])('%s: there is no such path', async (start) => {
    expect(await send(request(start, last))).toMatchObject({
      status: 404,
      body: { success: false, request_id: expect.any(String) },
    })
  })

  test.each(['/merchant/api/status', '/livez', '/graphql?query=%7B__typename%7D'])(
    'HTTP/1.0 at %s',
    async (path) => {
      const answer = await send(`GET ${path} HTTP/1.0\r\n\r\n`)
      expect(answer.status).toBe(200)
    },
  )
})
