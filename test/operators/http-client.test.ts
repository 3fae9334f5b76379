import { createServer } from 'node:net'
import { onTestFinished, test, expect, vi } from 'vitest'
import { createHttpClient, type HttpRequest } from '../../src/operators/http-client.ts'
import { eventually, patienceMs } from '../kit/eventually.ts'
import { call, faults, reply, scriptedOperator } from '../kit/operators.ts'

function client(url: string, perSecond = 1_000) {
  const http = createHttpClient('OperatorA', [new URL(url).origin], perSecond, () => new Date())
  onTestFinished(() => http.close())
  return http
}

function post(url: string, more: Partial<HttpRequest> = {}): HttpRequest {
  return {
    operation: 'collect',
    correlationId: 'c',
    method: 'POST',
    url: new URL(url),
    headers: {},
    body: '{}',
    ...more,
  }
}

test.each(faults.filter(({ cause }) => !/5xx|unreadable/.test(cause)))(
  '$name is lost: $cause',
  async ({ act, cause }) => {
    const { url, seen } = await scriptedOperator(act)
    expect(await client(url).send(post(url), call({ ms: 800 }))).toEqual({ kind: 'lost', cause })
    expect(seen).toHaveLength(1)
  },
)

test('a closed port is not sent', async () => {
  const url = 'http://127.0.0.1:1/x'
  expect(await client(url).send(post(url), call())).toMatchObject({ kind: 'not_sent', cause: 'connect' })
})

test('a name that does not exist is not sent', async () => {
  const url = 'http://operator.invalid/x'
  expect(await client(url).send(post(url), call())).toMatchObject({ kind: 'not_sent', cause: 'dns' })
})

test('a server that does not speak TLS is not sent', async () => {
  const { url } = await scriptedOperator(reply(200, {}))
  const secure = url.replace('http:', 'https:')
  expect(await client(secure).send(post(secure), call())).toMatchObject({ kind: 'not_sent', cause: 'tls' })
})

test('a deadline that passes before the connection stands is not sent, nor later', async () => {
  let bytes = 0
  // Accepts the connection and never answers the handshake: the request waits, unwritten.
  const server = createServer((socket) => {
    socket.on('data', (chunk) => (bytes += chunk.length))
    socket.on('error', () => undefined)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as { port: number }
  const url = `https://127.0.0.1:${port}/x`
  const result = await client(url).send(post(url, { body: 'x'.repeat(100_000) }), call({ ms: 700 }))
  expect(result).toEqual({ kind: 'not_sent', cause: 'deadline_before_send' })
  expect(bytes).toBeLessThan(10_000)
})

test('an answer is whole: status, headers, JSON and the digest of its bytes', async () => {
  const { url } = await scriptedOperator(reply(201, { a: 1 }, { 'x-date': 'today' }))
  const result = await client(url).send(post(url), call())
  expect(result).toMatchObject({
    kind: 'answered',
    status: 201,
    json: { a: 1 },
    headers: { 'x-date': 'today' },
  })
  expect(result).toHaveProperty('digest', '015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862')
})

test('a redirect is an answer and is not followed', async () => {
  const elsewhere = await scriptedOperator(reply(200, {}))
  const { url } = await scriptedOperator(reply(307, '', { location: elsewhere.url }))
  expect(await client(url).send(post(url), call())).toMatchObject({ kind: 'answered', status: 307 })
  expect(elsewhere.seen).toHaveLength(0)
})

test('an address outside the configured origins is a bug', async () => {
  const { url, seen } = await scriptedOperator(reply(200, {}))
  await expect(client('http://127.0.0.1:1').send(post(url), call())).rejects.toThrow('no address of')
  expect(seen).toHaveLength(0)
})

test('with less than 500 ms left nothing is sent', async () => {
  const { url, seen } = await scriptedOperator(reply(200, {}))
  expect(await client(url).send(post(url), call({ ms: 450 }))).toEqual({
    kind: 'not_sent',
    cause: 'deadline_before_send',
  })
  expect(seen).toHaveLength(0)
})

test('a call that its caller gave up is not sent if it waits, and lost if it is under way', async () => {
  const { url, seen } = await scriptedOperator(() => abort.abort())
  const abort = new AbortController()
  expect(await client(url).send(post(url), call({ signal: abort.signal }))).toEqual({
    kind: 'lost',
    cause: 'deadline',
  })
  expect(await client(url).send(post(url), call({ signal: abort.signal }))).toMatchObject({
    kind: 'not_sent',
  })
  expect(seen).toHaveLength(1)
})

test('closing the client ends the calls under way as lost', async () => {
  const arrived = Promise.withResolvers<void>()
  const { url } = await scriptedOperator(() => arrived.resolve())
  const http = client(url)
  const under = http.send(post(url), call())
  await arrived.promise
  await http.close()
  expect(await under).toEqual({ kind: 'lost', cause: 'response_lost' })
})

test('a burst of two seconds passes, the rest waits for its turn or is turned away', async () => {
  const { url, seen } = await scriptedOperator(reply(200, {}))
  const http = client(url, 2)
  // The rate's clock stands still while the calls arrive, so that a slow machine gives them no more turns.
  const began = performance.now()
  const clock = vi.spyOn(performance, 'now').mockReturnValue(began)
  onTestFinished(() => clock.mockRestore())
  // The fifth has to wait half a second for its turn, the next ones longer than they may.
  const deadlines = [...Array<number>(5).fill(patienceMs), 1_490, 1_490]
  const sent = deadlines.map((ms) => http.send(post(url), call({ ms })))
  await eventually(() => expect(seen).toHaveLength(4))
  const refused = { kind: 'not_sent', cause: 'rate_limited' }
  expect(await Promise.all(sent.slice(5))).toMatchObject([refused, refused])
  expect(seen).toHaveLength(4)
  clock.mockReturnValue(began + 500)
  expect(await Promise.all(sent.slice(0, 5))).toMatchObject(
    deadlines.slice(0, 5).map(() => ({ kind: 'answered' })),
  )
  expect(seen).toHaveLength(5)
})

test('every exchange is recorded, without secrets and cut to 4 KiB', async () => {
  const { url } = await scriptedOperator(reply(200, `{"access_token":"s3cret","a":"${'x'.repeat(9_000)}"}`))
  const ctx = call()
  await client(url).send(post(`${url}/pay?q=1`, { body: '{"pin":"1234","amount":"5"}' }), ctx)
  const [exchange] = ctx.exchanges
  expect(exchange).toMatchObject({
    operation: 'collect',
    method: 'POST',
    path: '/pay?q=1',
    status: 200,
    provider: 'OperatorA',
  })
  expect(exchange?.requestBody).toBe('{"pin":"[secret]","amount":"5"}')
  expect(exchange?.responseBody).toMatch(/^\{"access_token":"\[secret\]","a":"x+$/)
  expect(exchange?.responseBody.length).toBeLessThan(4_200)
})

test('a failed exchange is recorded with its error and no status', async () => {
  const { url } = await scriptedOperator((response) => response.destroy())
  const ctx = call()
  await client(url).send(post(url, { confidential: true }), ctx)
  expect(ctx.exchanges).toMatchObject([
    { status: null, requestBody: '[secret]', error: expect.stringContaining('closed') },
  ])
})

test('background work leaves half of the burst to calls that a customer waits for', async () => {
  const { url } = await scriptedOperator(reply(200, {}))
  const http = client(url, 2)
  const order: string[] = []
  const send = async (priority: 'interactive' | 'background', name: string) => {
    await http.send(post(url), call({ priority }))
    order.push(name)
  }
  await Promise.all([send('background', '1'), send('background', '2')])
  // The third waits half a second for its turn; a checkout does not.
  const third = send('background', '3')
  await send('interactive', 'checkout')
  await third
  expect(order.slice(2)).toEqual(['checkout', '3'])
})
