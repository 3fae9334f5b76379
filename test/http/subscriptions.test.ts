import { type Client, createClient } from 'graphql-ws'
import { afterEach, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { eventually } from '../kit/eventually.ts'
import { createOperations } from '../../src/graphql/operation.ts'
import { createGraphqlHandler } from '../../src/http/graphql.ts'
import { serveSubscriptions, type Subscriptions } from '../../src/http/subscriptions.ts'
import { limits } from '../../src/shared/limits.ts'
import { serve } from '../kit/graphql.ts'

const servers: Subscriptions[] = []
const { url, fixture } = serve((server, { services, schema }) => {
  server.on(
    'request',
    createGraphqlHandler({ services, operations: createOperations(schema), isDraining: () => false }),
  )
  const subscriptions = serveSubscriptions({
    services,
    operations: createOperations(schema),
    server,
    pingMs: 1_000,
  })
  servers.push(subscriptions)
  return () => subscriptions.close()
})
const { ticks, services } = fixture
const socketUrl = () => url().replace('http', 'ws')

const clients: Client[] = []
const sockets: WebSocket[] = []
afterEach(async () => {
  for (const client of clients.splice(0)) await client.dispose()
  for (const socket of sockets.splice(0)) socket.terminate()
  ticks.paddingBytes = 0
  await eventually(() => ticks.open === 0 && services.streams.size === 0)
})

function clientOf(token: string | null): Client {
  const connectionParams = token === null ? {} : { authorization: `Bearer ${token}` }
  const client = createClient({
    url: socketUrl(),
    webSocketImpl: WebSocket,
    connectionParams,
    retryAttempts: 0,
  })
  clients.push(client)
  return client
}

async function ask(client: Client, query: string): Promise<unknown> {
  for await (const result of client.iterate({ query })) return result
  return null
}

/** Speaks the protocol by hand. */
async function connect(
  token: string | null,
): Promise<{ socket: WebSocket; messages: Message[]; closed: Promise<number> }> {
  const socket = new WebSocket(socketUrl(), 'graphql-transport-ws')
  sockets.push(socket)
  const messages: Message[] = []
  const closed = new Promise<number>((resolve) => socket.on('close', resolve))
  socket.on('message', (data: Buffer) => messages.push(JSON.parse(data.toString()) as Message))
  await new Promise((resolve) => socket.on('open', resolve))
  const payload = token === null ? {} : { authorization: `Bearer ${token}` }
  socket.send(JSON.stringify({ type: 'connection_init', payload }))
  await Promise.race([eventually(() => messages.length > 0), closed])
  return { socket, messages, closed }
}

/** Subscribes with a token that lives so long; with a longer one where a slow machine misses its end. */
async function subscribeFor(
  expiresInMs: number,
): Promise<{ token: string; messages: Message[]; closed: Promise<number> }> {
  const token = fixture.issue({ expiresInMs })
  const { socket, ...connection } = await connect(token)
  subscribe(socket, '1', 'subscription { ticks { n } }')
  await eventually(() => ticks.open === 1 || socket.readyState === WebSocket.CLOSED)
  if (ticks.open === 0 && expiresInMs < 30_000) return subscribeFor(expiresInMs * 3)
  return { token, ...connection }
}

interface Message {
  type: string
  id?: string
  payload?: unknown
}

const subscribe = (socket: WebSocket, id: string, query: string) =>
  socket.send(JSON.stringify({ type: 'subscribe', id, payload: { query } }))

describe('operations', () => {
  test('events come in order, and the end of the client ends the source', async () => {
    ticks.advance(3)
    const seen: unknown[] = []
    for await (const result of clientOf(fixture.issue()).iterate({
      query: 'subscription { ticks(after: "0") { n } }',
    })) {
      seen.push(result)
      if (seen.length === 3) break
    }
    expect(seen).toEqual([1, 2, 3].map((n) => ({ data: { ticks: { n } } })))
  })

  test('queries and mutations work too, as over HTTP', async () => {
    const client = clientOf(fixture.issue())
    const cost = { requested: 0, limit: limits.graphqlCostMax }
    expect(await ask(client, '{ secret }')).toMatchObject({
      data: { secret: 'secret' },
      extensions: { cost },
    })
    expect(await ask(client, 'mutation { pay(amount: 1) }')).toMatchObject({ data: { pay: 'paid 1' } })
    expect(await ask(client, '{ fails }')).toMatchObject({
      data: null,
      errors: [{ extensions: { code: 'INTERNAL_SERVER_ERROR', requestId: expect.any(String) } }],
    })
  })

  test('an error of one operation is reported, and the socket stays open', async () => {
    const { socket, messages } = await connect(fixture.issue({ scopes: ['balance'] }))
    const wrong: [string, string][] = [
      ['{ hello', 'GRAPHQL_PARSE_FAILED'],
      ['{ nothing }', 'GRAPHQL_VALIDATION_FAILED'],
      ['{ secret }', 'FORBIDDEN'],
      ['{ batches(first: 100) { nodes { recipients(first: 101) { nodes { id } } } } }', 'COST_EXCEEDED'],
      [`{ ${'hello '.repeat(2_100)} }`, 'GRAPHQL_PARSE_FAILED'],
      ['subscription { broken { n } }', 'INTERNAL_SERVER_ERROR'],
    ]
    for (const [index, [query, code]] of wrong.entries()) {
      subscribe(socket, `${index}`, query)
      await eventually(() => messages.some(({ id }) => id === `${index}`))
      const answer = messages.find(({ id }) => id === `${index}`)
      expect([query, answer]).toMatchObject([query, { type: 'error', payload: [{ extensions: { code } }] }])
    }
    expect(JSON.stringify(messages)).not.toContain('hunter2')
    subscribe(socket, 'right', '{ hello }')
    await eventually(() => messages.some(({ id, type }) => id === 'right' && type === 'complete'))
  })

  test('without a token only public fields answer', async () => {
    const { socket, messages } = await connect(null)
    subscribe(socket, '1', '{ hello }')
    subscribe(socket, '2', 'subscription { ticks { n } }')
    await eventually(() => messages.filter(({ id }) => id !== undefined).length === 3)
    expect(messages).toContainEqual(expect.objectContaining({ id: '1', type: 'next' }))
    expect(messages.find(({ id }) => id === '2')).toMatchObject({
      type: 'error',
      payload: [{ extensions: { code: 'UNAUTHENTICATED' } }],
    })
  })
})

describe('a socket', () => {
  test('closes with 4403 for a bad token, and takes one from the header', async () => {
    const { messages, closed } = await connect('nonsense')
    expect([await closed, messages]).toEqual([4403, []])
    const headers = { authorization: `Bearer ${fixture.issue()}` }
    const webSocketImpl = class extends WebSocket {
      constructor(address: string, protocol: string) {
        super(address, protocol, { headers })
      }
    }
    const client = createClient({ url: socketUrl(), webSocketImpl, retryAttempts: 0 })
    clients.push(client)
    expect(await ask(client, '{ secret }')).toMatchObject({ data: { secret: 'secret' } })
  })

  test.each([
    ['revoked', 3_600_000, (token: string) => fixture.revoke(token)],
    ['expired', 300, () => {}],
  ])(
    'whose token is %s ends each subscription with the reason, then closes with 4403',
    async (_how, expiresInMs, end) => {
      const { token, messages, closed } = await subscribeFor(expiresInMs)
      end(token)
      expect(await closed).toBe(4403)
      expect(messages.at(-1)).toMatchObject({
        type: 'error',
        id: '1',
        payload: [{ extensions: { code: 'UNAUTHENTICATED' } }],
      })
    },
  )

  test('with a large message or without its init is refused', async () => {
    const { socket, closed } = await connect(fixture.issue())
    socket.send(' '.repeat(limits.webSocketPayloadMaxBytes + 1))
    expect(await closed).toBe(1009)
    const silent = new WebSocket(socketUrl(), 'graphql-transport-ws')
    expect(await new Promise((resolve) => silent.on('close', resolve))).toBe(4408)
  })

  test('beyond the limit of its token is closed, and may retry later', async () => {
    const token = fixture.issue()
    const open = Array.from({ length: limits.webSocketsPerTokenMax }, () => connect(token))
    const [first] = await Promise.all(open)
    expect(await (await connect(token)).closed).toBe(1013)
    first?.socket.terminate()
    await first?.closed
    await eventually(() => services.streams.size === 0)
    const again = await connect(token)
    expect(again.messages).toEqual([{ type: 'connection_ack' }])
  })

  test('without a token counts against a limit per address', async () => {
    const open = () => {
      const socket = new WebSocket(socketUrl(), 'graphql-transport-ws')
      sockets.push(socket)
      return new Promise<string>((resolve) => {
        socket.on('open', () => resolve('open'))
        socket.on('error', ({ message }) => resolve(message))
      })
    }
    const opened = await Promise.all(Array.from({ length: limits.webSocketsPerAddressMax + 10 }, open))
    expect(opened.filter((word) => word === 'open')).toHaveLength(limits.webSocketsPerAddressMax)
    expect(opened.filter((word) => word.includes('429'))).toHaveLength(10)
    for (const socket of sockets.splice(0)) socket.terminate()
    await eventually(() => services.streams.size === 0)
    const { messages } = await connect(fixture.issue())
    expect(messages).toEqual([{ type: 'connection_ack' }])
  })

  test('has a limited number of running operations', async () => {
    const { socket, messages } = await connect(fixture.issue())
    for (let id = 0; id < 70; id += 1) subscribe(socket, `${id}`, '{ slow }')
    await eventually(() => messages.filter(({ type }) => type === 'error').length === 6)
    expect(messages.at(-1)).toMatchObject({ payload: [{ extensions: { code: 'RATE_LIMITED' } }] })
  })

  test('shares the subscriptions of its token with all other sockets of that token', async () => {
    const token = fixture.issue()
    const [first, second] = [await connect(token), await connect(token)]
    for (let id = 0; id < limits.subscriptionsPerTokenMax; id += 1) {
      subscribe(id % 2 ? first.socket : second.socket, `${id}`, 'subscription { ticks { n } }')
    }
    await eventually(() => services.streams.get('merchant:1') === limits.subscriptionsPerTokenMax)
    subscribe(first.socket, 'more', 'subscription { ticks { n } }')
    await eventually(() => first.messages.some(({ id }) => id === 'more'))
    expect(JSON.stringify(first.messages)).toContain('TOO_MANY_SUBSCRIPTIONS')
    second.socket.terminate()
    await eventually(() => services.streams.get('merchant:1') === limits.subscriptionsPerTokenMax / 2)
    subscribe(first.socket, 'again', 'subscription { ticks { n } }')
    await eventually(() => services.streams.get('merchant:1') === limits.subscriptionsPerTokenMax / 2 + 1)
  })
})

describe('a reader that stalls', () => {
  test('stops the source, and is cut off when it does not answer pings', async () => {
    ticks.paddingBytes = 64 * 1_024
    ticks.advance(2_000)
    const before = ticks.pulled
    const { socket, messages } = await connect(fixture.issue())
    subscribe(socket, '1', 'subscription { ticks(after: "0") { n padding } }')
    await eventually(() => messages.length > 1)
    socket.pause()
    await eventually(() => ticks.open === 0)
    expect(ticks.pulled - before).toBeLessThan(300)
  })

  test('for a short time loses no event', async () => {
    ticks.paddingBytes = 64 * 1_024
    ticks.advance(400)
    const { socket, messages } = await connect(fixture.issue())
    subscribe(socket, '1', 'subscription { ticks(after: "0") { n padding } }')
    await eventually(() => messages.length > 1)
    socket.pause()
    await new Promise((resolve) => setTimeout(resolve, 500))
    socket.resume()
    await eventually(() => messages.length === 401)
    const seen = messages
      .slice(1)
      .map(({ payload }) => (payload as { data: { ticks: { n: number } } }).data.ticks.n)
    expect(seen).toEqual(Array.from({ length: 400 }, (_, index) => index + 1))
  })

  test('in front of many unread answers is not read from any more', async () => {
    const { socket } = await connect(fixture.issue())
    socket.pause()
    const ping = JSON.stringify({ type: 'ping', payload: { padding: 'x'.repeat(60_000) } })
    for (let count = 0; count < 500; count += 1) socket.send(ping)
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(socket.bufferedAmount).toBeGreaterThan(10_000_000)
  })
})

test('the end of the service closes sockets with 1001', async () => {
  const { closed, socket } = await connect(fixture.issue())
  subscribe(socket, '1', 'subscription { ticks { n } }')
  await eventually(() => ticks.open === 1)
  await servers[0]?.close()
  expect(await closed).toBe(1001)
})
