import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import { addressMatcher } from '../../src/shared/ip-whitelist.ts'
import { createOperations } from '../../src/graphql/operation.ts'
import { readBody } from '../../src/http/request.ts'
import { type HttpServer, listenHttp } from '../../src/http/server.ts'
import { serveSubscriptions } from '../../src/http/subscriptions.ts'
import { limits } from '../../src/shared/limits.ts'
import type { Log } from '../../src/telemetry/log.ts'
import { createFixture } from '../kit/graphql.ts'
import { usualWaits } from '../kit/patience.ts'
import { useBounds } from '../kit/use-bounds.ts'
import { waits } from '../../src/shared/waits.ts'

// The server must give up the descriptor of each connection that it refuses, even if the client never closes.

const { headersTimeoutMs, requestTimeoutMs, connectionIdleMs } = limits
useBounds(limits, { headersTimeoutMs: 400, requestTimeoutMs: 400, connectionIdleMs: 1_500 })

const load = 300
const handled: string[] = []
const http = await listenHttp(
  '127.0.0.1',
  0,
  Promise.resolve((message, response) => {
    void readBody(message).then((body) => {
      if (body) handled.push(body.toString())
      response.end('read')
    })
  }),
)
const fixture = createFixture('sandbox')
const { services, schema } = fixture
const sockets = serveSubscriptions({ services, operations: createOperations(schema), server: http.server })
afterAll(async () => {
  await sockets.close()
  await http.drain(0)
  fixture.close()
})

/** A client that reads everything, and never closes its side. */
async function open({ port }: HttpServer = http, reads = true): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.on('error', () => {})
  if (reads) socket.resume()
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  return socket
}

function openConnections({ server }: HttpServer = http): Promise<number> {
  return new Promise((resolve) => server.getConnections((_error, count) => resolve(count)))
}

const lines = (...all: string[]) => `${all.join('\r\n')}\r\n\r\n`
const halfHead = 'GET / HTTP/1.1\r\nHost: x\r\n'
const halfBody = lines('POST / HTTP/1.1', 'Host: x', 'Content-Length: 100') + '{"amount":'
const refusedUpgrade = lines('GET /nowhere HTTP/1.1', 'Host: x', 'Connection: Upgrade', 'Upgrade: websocket')

describe('the server closes the connection of a client that never closes', () => {
  test.each([
    ['never sends a byte', ''],
    ['sends half a head', halfHead],
    ['sends half a body', halfBody],
    ['sends no HTTP', 'hello?\r\n\r\n'],
    ['asks for an upgrade that is refused', refusedUpgrade],
  ])('and 300 of them do: each %s', async (_what, bytes) => {
    let taken = 0
    const count = () => void (taken += 1)
    http.server.on('connection', count)
    onTestFinished(() => void http.server.off('connection', count))
    // Every other client does not even read the refusal.
    const all = Array.from({ length: load }, (_none, index) => open(http, index % 2 === 0))
    for (const client of await Promise.all(all)) client.write(bytes)
    await eventually(() => expect(taken).toBe(load))
    await eventually(async () => expect(await openConnections()).toBe(0))
  })
})

/** All bytes that come back on a connection until the server has closed it. */
async function answerOf(client: Socket): Promise<string> {
  let text = ''
  client.on('data', (part) => (text += String(part)))
  await once(client, 'end')
  return text
}

test('a request that arrives whole only after its 408 is not executed', async () => {
  const client = await open()
  const answer = answerOf(client)
  client.write(lines('POST / HTTP/1.1', 'Host: x', 'Content-Length: 4') + 'la')
  expect(await answer).toMatch(/^HTTP\/1\.1 408 /)
  client.write('te')
  const other = await open()
  const second = answerOf(other)
  other.write(halfHead)
  expect(await second).toMatch(/^HTTP\/1\.1 408 /)
  other.write('Content-Length: 4\r\n\r\nlate')
  await eventually(async () => expect(await openConnections()).toBe(0))
  expect(handled).not.toContain('late')
})

test('a client that stops reading its answer is cut off', async () => {
  const large = await listenHttp(
    '127.0.0.1',
    0,
    Promise.resolve((_message, response) => response.end(Buffer.alloc(64 * 1_024 * 1_024))),
  )
  onTestFinished(() => large.drain(0))
  const client = await open(large, false)
  client.pause()
  client.write(lines('GET / HTTP/1.1', 'Host: x'))
  await eventually(async () => expect(await openConnections(large)).toBe(1))
  await eventually(async () => expect(await openConnections(large)).toBe(0))
})

describe('more connections than the bounds allow', () => {
  const warned: Record<string, unknown>[] = []
  const log = { warn: (told: Record<string, unknown>) => warned.push(told) } as unknown as Log

  async function listen(max: number, perAddressMax: number, trusted: string[] = []): Promise<HttpServer> {
    // A client of these that is late is not cut off.
    useBounds(limits, { headersTimeoutMs, requestTimeoutMs, connectionIdleMs }, onTestFinished)
    const bounded = await listenHttp(
      '127.0.0.1',
      0,
      Promise.resolve((_message, response) => response.end('here')),
      { max, perAddressMax, isTrustedProxy: addressMatcher(trusted), log },
    )
    onTestFinished(() => bounded.drain(0))
    return bounded
  }

  async function ask(client: Socket): Promise<string> {
    const [answer] = await Promise.all([
      once(client, 'data'),
      new Promise((sent) => client.write(lines('GET / HTTP/1.1', 'Host: x'), sent)),
    ])
    return String(answer[0])
  }

  test('from one address get 503 in the envelope, and a freed slot is free again', async () => {
    const bounded = await listen(1_000, 10)
    const clients = await Promise.all(Array.from({ length: 10 }, () => open(bounded)))
    for (const client of clients) expect(await ask(client)).toMatch(/^HTTP\/1\.1 200 /)
    const answer = await ask(await open(bounded))
    expect(answer).toMatch(/^HTTP\/1\.1 503 /)
    expect(answer).toMatch(/\r\nConnection: close\r\n/)
    expect(answer).toMatch(/\r\nRetry-After: 1\r\n/)
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))).toMatchObject({ success: false })
    expect(warned.at(-1)).toEqual({
      setting: 'CONNECTIONS_PER_ADDRESS_MAX',
      address: '127.0.0.1',
      refused: 1,
    })
    clients[0]?.destroy()
    await eventually(async () => expect(await ask(await open(bounded))).toMatch(/^HTTP\/1\.1 200 /))
  })

  test('from a trusted proxy meet only the bound of all connections', async () => {
    const bounded = await listen(20, 10, ['127.0.0.0/8'])
    const clients = await Promise.all(Array.from({ length: 20 }, () => open(bounded)))
    for (const client of clients) expect(await ask(client)).toMatch(/^HTTP\/1\.1 200 /)
    expect(await ask(await open(bounded))).toMatch(/^HTTP\/1\.1 503 /)
    expect(warned.at(-1)).toMatchObject({ setting: 'CONNECTIONS_MAX' })
  })

  test('and a flood of 1,000 hold few descriptors more than the bound, and soon none', async () => {
    useBounds(waits, { firstByteMs: usualWaits.firstByteMs }, onTestFinished)
    const bounded = await listen(20, 20)
    for (let index = 0; index < 20; index += 1) await ask(await open(bounded))
    let most = 0
    bounded.server.on(
      'connection',
      () => void openConnections(bounded).then((now) => (most = Math.max(most, now))),
    )
    await Promise.all(Array.from({ length: 1_000 }, () => open(bounded)))
    await eventually(async () => expect(await openConnections(bounded)).toBe(20))
    expect(most).toBeGreaterThan(20)
    expect(most).toBeLessThanOrEqual(20 + 256)
  })
})
