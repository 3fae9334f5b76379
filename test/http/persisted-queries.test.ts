import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { afterAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { startTestApp } from '../kit/app.ts'
import { eventually } from '../kit/eventually.ts'

// Apollo's clients send only the hash of an operation, until the service answers that it knows no hashes.

const service = await startTestApp()
const shop = await service.merchant()
afterAll(() => service.close())

const query = '{ balance { available } }'
const subscription = 'subscription { transactionChanged { sequence } }'
const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')
const extensions = { persistedQuery: { version: 1, sha256Hash: hashOf(query) } }
const notSupported = {
  message: 'PersistedQueryNotSupported',
  extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED', requestId: expect.any(String) },
}

interface Answered {
  status: number
  body: { data?: unknown; errors?: unknown }
}

async function send(
  path: string,
  request: { method?: string; body?: string; headers?: Record<string, string> },
  accept: string,
): Promise<Answered> {
  const headers = { ...request.headers, Accept: accept, Authorization: `Bearer ${shop.token}` }
  const response = await fetch(`${service.url}${path}`, { ...request, headers })
  const text = await response.text()
  return { status: response.status, body: JSON.parse(/^data: (.+)$/m.exec(text)?.[1] ?? text) }
}

const usual = 'application/graphql-response+json, application/json;q=0.9'
const post = (body: object, accept = usual) =>
  send(
    '/graphql',
    { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } },
    accept,
  )
const get = (asked: Record<string, unknown>, accept = usual) => {
  const texts = Object.entries(asked).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ])
  return send(`/graphql?${new URLSearchParams(texts)}`, {}, accept)
}

async function openSocket() {
  const socket = new WebSocket(`${service.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws')
  const messages: unknown[] = []
  socket.on('message', (data: Buffer) => messages.push(JSON.parse(data.toString())))
  const closed = once(socket, 'close').then(([code, reason]) => [code, (reason as Buffer).toString()])
  /** Returns the next message; the code and the reason where the socket closes before it. */
  const receive = () =>
    eventually(async () => {
      if (messages.length > 0) return messages.shift()
      expect(socket.readyState).toBe(WebSocket.CLOSED)
      return closed
    })
  await once(socket, 'open')
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${shop.token}` } }))
  await receive()
  return { socket, receive }
}

async function overSocket(payload: unknown): Promise<unknown> {
  const { socket, receive } = await openSocket()
  socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload }))
  const answer = await receive()
  socket.terminate()
  return answer
}

const balance = { status: 200, body: { data: { balance: { available: 0 } } } }

describe('a hash without a text', () => {
  test.each([
    ['POST', () => post({ extensions })],
    ['POST, for JSON only', () => post({ extensions }, 'application/json')],
    ['POST with variables', () => post({ operationName: 'Of', variables: {}, extensions })],
    ['POST with an empty text', () => post({ query: '', extensions })],
    ['POST with null for the text', () => post({ query: null, extensions })],
    ['GET', () => get({ extensions })],
    ['GET, for events', () => get({ extensions }, 'text/event-stream')],
    ['POST, for events', () => post({ extensions }, 'text/event-stream')],
  ])('by %s: the client is told to send the text', async (_how, ask) => {
    expect(await ask()).toEqual({ status: 200, body: { errors: [notSupported] } })
  })

  test.each([{ extensions }, { query: null, extensions }, { query: '', extensions }])(
    'by WebSocket, %j: the client is told to send the text, and the other subscription goes on',
    async (payload) => {
      const { socket, receive } = await openSocket()
      const subscribe = (message: object) => socket.send(JSON.stringify({ type: 'subscribe', ...message }))
      subscribe({ id: 'other', payload: { query: subscription } })
      subscribe({ id: '1', payload })
      expect(await receive()).toMatchObject({ id: '1', type: 'error', payload: [notSupported] })
      subscribe({ id: '2', payload: { query } })
      expect(await receive()).toMatchObject({ id: '2', type: 'next', payload: balance.body })
      expect(await receive()).toMatchObject({ id: '2', type: 'complete' })
      socket.terminate()
    },
  )
})

describe('a hash with its text', () => {
  test('is answered like the text alone', async () => {
    expect(await post({ query, extensions })).toMatchObject(balance)
    expect(await get({ query, extensions })).toMatchObject(balance)
    expect(await overSocket({ query, extensions })).toMatchObject({ type: 'next', payload: balance.body })
  })

  test('a wrong hash changes nothing, since none is kept', async () => {
    const wrong = { persistedQuery: { version: 1, sha256Hash: hashOf(subscription) } }
    expect(await post({ query, extensions: wrong })).toMatchObject(balance)
    expect(await post({ extensions: wrong })).toMatchObject({ body: { errors: [notSupported] } })
  })
})

test.each([{}, { extensions: {} }, { extensions: { persistedQuery: null }, query: 5 }])(
  'a request with neither text nor hash is a bad request: %j',
  async (asked) => {
    const { status, body } = await post(asked)
    expect([status, body.errors]).toMatchObject([400, [{ extensions: { code: 'BAD_REQUEST' } }]])
  },
)

// The protocol asks for this of every message that is not in its form.
test.each([
  {},
  { query: null },
  { query: 5 },
  { extensions: {} },
  { query: 5, extensions },
  { query: { persistedQuery: query } },
  [],
  'text',
  null,
  [{ extensions }],
])('a WebSocket closes with 4400 for an operation without a text or a hash: %j', async (payload) => {
  expect(await overSocket(payload)).toEqual([4400, expect.any(String)])
})
