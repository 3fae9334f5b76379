import { EventEmitter, once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { readBody } from '../../src/http/request.ts'
import { listenHttp } from '../../src/http/server.ts'
import { limits } from '../../src/shared/limits.ts'
import { eventually } from '../kit/eventually.ts'

test('a connection without a request does not delay the end of the server', async () => {
  const http = await listenHttp(
    '127.0.0.1',
    0,
    Promise.resolve((_message, response) => response.end('here')),
  )
  const silent = connect(http.port, '127.0.0.1')
  onTestFinished(() => void silent.destroy())
  await once(silent, 'connect')
  // Longer than the test may take.
  await http.drain(3_600_000)
  await expect(fetch(`http://127.0.0.1:${http.port}/`)).rejects.toThrow('fetch failed')
})

test('a running request is answered, and its connection ends with the answer', async () => {
  const gate = Promise.withResolvers<void>()
  const http = await listenHttp(
    '127.0.0.1',
    0,
    Promise.resolve((_message, response) => void gate.promise.then(() => response.end('done'))),
  )
  const answer = fetch(`http://127.0.0.1:${http.port}/`)
  const connections = () => new Promise<number>((count) => http.server.getConnections((_e, n) => count(n)))
  await eventually(async () => expect(await connections()).toBe(1))
  const drained = http.drain(10_000)
  expect(http.isDraining()).toBe(true)
  gate.resolve()
  expect(await (await answer).text()).toBe('done')
  await drained
  await expect(fetch(`http://127.0.0.1:${http.port}/`)).rejects.toThrow('fetch failed')
})

test('requests that come before the service is ready wait for it', async () => {
  const ready = Promise.withResolvers<Parameters<typeof listenHttp>[2] extends Promise<infer L> ? L : never>()
  const http = await listenHttp('127.0.0.1', 0, ready.promise)
  const early = fetch(`http://127.0.0.1:${http.port}/`)
  ready.resolve((_message, response) => response.end('ready'))
  expect(await (await early).text()).toBe('ready')
  await http.drain(1_000)
})

test('a head that never ends is cut off with 408 in the envelope', async () => {
  const http = await listenHttp(
    '127.0.0.1',
    0,
    Promise.resolve(() => {}),
  )
  http.server.headersTimeout = 100
  const socket = connect(http.port, '127.0.0.1')
  let answer = ''
  socket.on('data', (chunk) => (answer += String(chunk)))
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n')
  await once(socket, 'close')
  expect(answer).toMatch(/^HTTP\/1\.1 408 .*"success":false/s)
  await http.drain(1_000)
})

test.each([
  ['a small body', limits.bodyMaxBytes, limits.requestTimeoutMs],
  ['a body of recipients', limits.recipientsBodyMaxBytes, limits.recipientsTimeoutMs],
])('%s that dribbles in is cut off with 408 in its own time', async (_what, maxBytes, mayTakeMs) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const arrivals = new EventEmitter()
  const read = Promise.withResolvers<Buffer | null>()
  const http = await listenHttp(
    '127.0.0.1',
    0,
    Promise.resolve((message) => {
      void readBody(message, maxBytes).then(read.resolve)
      message.on('data', (piece) => arrivals.emit(String(piece), message.socket))
    }),
  )
  const socket = connect(http.port, '127.0.0.1')
  let answer = ''
  socket.on('data', (chunk) => (answer += String(chunk)))
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nslow')
  await once(arrivals, 'slow')
  vi.advanceTimersByTime(mayTakeMs - 1)
  socket.write('er')
  const [served] = (await once(arrivals, 'er')) as [Socket]
  expect(served.writableEnded).toBe(false)
  vi.advanceTimersByTime(1)
  await once(socket, 'close')
  expect(answer).toMatch(/^HTTP\/1\.1 408 .*"success":false/s)
  expect(await read.promise).toBeNull()
  vi.useRealTimers()
  await http.drain(1_000)
})
