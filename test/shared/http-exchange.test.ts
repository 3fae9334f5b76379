import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Agent } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import { exchangeOnce } from '../../src/shared/http-exchange.ts'

/** A server that leaves each request open, and a client with one connection to it. */
async function openServer() {
  const open: ServerResponse[] = []
  const paths: string[] = []
  const server = createServer((request, response) => {
    paths.push(String(request.url))
    open.push(response)
    server.emit('arrived')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const agent = new Agent({ connections: 1, pipelining: 1 })
  onTestFinished(async () => {
    await agent.destroy()
    server.close()
  })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const get = (path: string, signal?: AbortSignal) =>
    exchangeOnce(agent, { origin, path, method: 'GET' }, { deadlineMs: 30_000, maxBytes: 4, signal })
  return { get, open, paths, arrived: () => once(server, 'arrived') }
}

test('an exchange that is given up while it waits for a connection never leaves', async () => {
  const { get, open, paths, arrived } = await openServer()
  const begun = arrived()
  const first = get('/first')
  await begun
  const giveUp = new AbortController()
  const second = get('/second', giveUp.signal)
  giveUp.abort()
  expect(await second).toMatchObject({ isSent: false, answer: null, end: 'broken', stoppedBy: 'caller' })
  open[0]?.end('one')
  expect(await first).toMatchObject({ isSent: true, end: 'whole', body: Buffer.from('one') })
  const last = arrived()
  const third = get('/third')
  await last
  open[1]?.end()
  expect(await third).toMatchObject({ end: 'whole' })
  expect(paths).toEqual(['/first', '/third'])
})

test('an interim answer is no answer, and a body that is too long is cut', async () => {
  const { get, open, arrived } = await openServer()
  const begun = arrived()
  const exchange = get('/')
  await begun
  open[0]?.writeEarlyHints({ link: '</style.css>; rel=preload' })
  open[0]?.writeHead(201, { 'x-several': ['a', 'b'] })
  open[0]?.end('12345')
  expect(await exchange).toMatchObject({
    answer: { status: 201, headers: { 'x-several': 'a, b' } },
    end: 'cut',
    body: Buffer.from('1234'),
    stoppedBy: null,
  })
})

test('a connection that breaks after an interim answer has brought no answer', async () => {
  const { get, open, arrived } = await openServer()
  const begun = arrived()
  const exchange = get('/')
  await begun
  open[0]?.writeEarlyHints({ link: '</style.css>; rel=preload' }, () => open[0]?.destroy())
  expect(await exchange).toMatchObject({ isSent: true, answer: null, end: 'broken', stoppedBy: null })
})
