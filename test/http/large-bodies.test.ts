import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { passOverBounds } from '../../src/http/pass-over.ts'
import { listenHttp } from '../../src/http/server.ts'
import { startTestApp } from '../kit/app.ts'
import { eventually, patienceMs } from '../kit/eventually.ts'
import { useBounds } from '../kit/use-bounds.ts'

// A client that is still writing sees why it was refused, not a broken pipe.

// Client and service share this process: while one is busy, the other does not fall silent.
useBounds(passOverBounds, { silenceMs: patienceMs })

const service = await startTestApp()
const shop = await service.merchant()
afterAll(() => service.close())
const { hostname, port } = new URL(service.url)
const mebibyte = Buffer.alloc(1_024 ** 2, 'a')

const paths: readonly (readonly [path: string, status: number])[] = [
  ['/merchant/api/pay', 413],
  ['/graphql', 413],
  ['/merchant/api/nothing', 404],
  ['/livez', 405],
]

/** Sends a body of this size with Node's client, which reads the answer only after it has written. */
async function post(path: string, mebibytes: number, agent: Agent | false): Promise<number | undefined> {
  const length = path === '/graphql' ? mebibytes + 6 : mebibytes
  const sent = request(`${service.url}${path}`, {
    agent,
    method: 'POST',
    headers: {
      Authorization: `Bearer ${shop.token}`,
      'Content-Type': 'application/json',
      'Content-Length': length * mebibyte.length,
    },
  })
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>
  for (let n = 0; n < length; n += 1) sent.write(mebibyte)
  sent.end()
  const [answer] = await answered
  await answer.resume().toArray()
  return answer.statusCode
}

describe.each([2, 12, 50])('a body of %i MiB', (mebibytes) => {
  test.each(paths)('to %s is answered with %i at each try', async (path, status) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const tries = mebibytes === 2 ? 5 : 1
    const seen: unknown[] = []
    for (let n = 0; n < tries; n += 1) {
      seen.push(await post(path, mebibytes, false), await post(path, mebibytes, agent))
    }
    expect(seen).toEqual(Array.from({ length: 2 * tries }, () => status))
  })
})

/** Opens a connection, sends the bytes, and gives the pieces that came back, and the end of it. */
async function speak(bytes: string, at = Number(port)) {
  const socket = connect(at, hostname)
  onTestFinished(() => void socket.destroy())
  const failures: string[] = []
  socket.on('error', ({ message }) => failures.push(message))
  let answer = ''
  socket.on('data', (part) => (answer += String(part)))
  await once(socket, 'connect')
  socket.write(bytes)
  return {
    socket,
    answer: () => answer,
    failures,
    closed: new Promise((resolve) => socket.once('close', resolve)),
  }
}
const head = (length: number, ...headers: string[]) =>
  ['POST /merchant/api/pay HTTP/1.1', 'Host: x', `Content-Length: ${length}`, ...headers].join('\r\n') +
  '\r\n\r\n'

test.each(['close', 'keep-alive'])(
  'a slow client reads its answer after it has written: %s',
  async (wish) => {
    const headers = [`Connection: ${wish}`, `Authorization: Bearer ${shop.token}`]
    const client = await speak(head(2_000_000, ...headers))
    for (let n = 0; n < 20; n += 1) {
      client.socket.write('a'.repeat(100_000), (error) => error && client.failures.push(error.message))
      await sleep(50)
    }
    await client.closed
    expect(client.failures).toEqual([])
    expect(client.answer()).toMatch(/^HTTP\/1\.1 413 /)
  },
)

test('a client that falls silent, or sends without end, is cut off', async () => {
  useBounds(passOverBounds, { silenceMs: 300, maxBytes: 3_000_000 }, onTestFinished)
  const silent = await speak(head(2_000_000))
  await silent.closed
  expect(silent.answer()).toMatch(/^HTTP\/1\.1 401 /)
  const endless = await speak(head(2_000_000_000))
  const writing = setInterval(() => endless.socket.writable && endless.socket.write(mebibyte), 5)
  await endless.closed
  clearInterval(writing)
  expect(endless.answer()).toMatch(/^HTTP\/1\.1 401 /)
})

test('a request after the last answer of a connection is not handled', async () => {
  const handled: unknown[] = []
  const ending = await listenHttp(
    '127.0.0.1',
    0,
    Promise.resolve((message, response) => {
      handled.push(message.url)
      response.setHeader('Connection', 'close').end('no')
    }),
  )
  onTestFinished(() => ending.drain(0))
  const client = await speak(head(200_000), ending.port)
  await eventually(() => expect(client.answer()).toMatch(/\r\n\r\nno$/))
  client.socket.write(`${'a'.repeat(200_000)}GET /second HTTP/1.1\r\nHost: x\r\n\r\n`)
  await client.closed
  expect(handled).toEqual(['/merchant/api/pay'])
})
