import { describe, expect, test } from 'vitest'
import type { SendResult } from '../../../src/shared/sender.ts'
import { patienceMs } from '../../kit/eventually.ts'
import { receiverCertificate } from '../../kit/webhooks/receiver-certificate.ts'
import { message, names, startReceiver, startSender, startSocket } from '../../kit/webhooks/receivers.ts'

const receiverNames = names({ 'receiver.test': ['127.0.0.1'], 'other.test': ['127.0.0.1'] })

describe('the status of a receiver', () => {
  test.each([
    [200, true],
    [204, true],
    [299, true],
    [301, false],
    [400, false],
    [404, false],
    [410, false],
    [500, false],
  ])('%i: delivered is %s', async (status, isDelivered) => {
    const receiver = await startReceiver((response) => response.writeHead(status).end())
    const result = await startSender().send(message(`http://127.0.0.1:${receiver.port}/hook?a=1`))
    expect(result).toEqual({
      isDelivered,
      statusCode: status,
      error: null,
      durationMs: expect.any(Number),
      answer: '',
      address: '127.0.0.1',
      retryAfterMs: undefined,
    })
    expect(Number.isInteger(result.durationMs)).toBe(true)
    expect(receiver.arrived).toMatchObject([{ path: '/hook?a=1', body: Buffer.from('{"event":"test"}') }])
  })

  test.each<[number, string, number | undefined]>([
    [429, '60', 1],
    [503, '120', 2],
    [503, new Date(Date.now() + 3_600_000).toUTCString(), 60],
    [429, new Date(0).toUTCString(), 0],
    [429, '99999999', 24 * 60],
    [429, 'soon', undefined],
    [500, '60', undefined],
    [200, '60', undefined],
  ])('%i with Retry-After %s asks for %s minutes', async (status, retryAfter, wait) => {
    const receiver = await startReceiver((response) =>
      response.writeHead(status, { 'retry-after': retryAfter }).end(),
    )
    const { retryAfterMs } = await startSender().send(message(`http://127.0.0.1:${receiver.port}/`))
    // A date has no milliseconds, and some pass until it is read.
    expect(retryAfterMs === undefined ? undefined : Math.ceil(retryAfterMs / 60_000)).toBe(wait)
  })

  test('the first 2 KiB of the answer are kept, as text that the database can store', async () => {
    const sender = startSender()
    const answers = [
      'a\0b',
      Buffer.from([0x61, 0xff, 0xfe, 0x62]),
      `${'a'.repeat(2_047)}é`,
      'é'.repeat(3_000),
    ]
    const receiver = await startReceiver((response) => response.end(answers.shift()))
    const keptAnswer = async () => (await sender.send(message(`http://127.0.0.1:${receiver.port}/`))).answer
    expect(await keptAnswer()).toBe('a\uFFFDb')
    expect(await keptAnswer()).toBe('a\uFFFD\uFFFDb')
    expect(await keptAnswer()).toBe('a'.repeat(2_047))
    expect(await keptAnswer()).toBe('é'.repeat(1_024))
  })

  test('an answer of 100 MB is read to 64 KiB and no further', async () => {
    const mega = Buffer.alloc(1_024 * 1_024, 'x')
    let written = 0
    const receiver = await startReceiver((response) => {
      const more = () => {
        while (written < 100 && !response.destroyed) {
          written += 1
          if (!response.write(mega)) return void response.once('drain', more)
        }
      }
      more()
    })
    const result = await startSender().send(message(`http://127.0.0.1:${receiver.port}/`))
    expect(result).toMatchObject({ isDelivered: true, statusCode: 200, answer: 'x'.repeat(2_048) })
    expect(written).toBeLessThan(20)
  })
})

describe('a receiver that does not answer', () => {
  const ask = async (port: number, deadlineMs = patienceMs, path = '/'): Promise<SendResult> => {
    const sender = startSender({}, { deadlineMs })
    return sender.send(message(`http://127.0.0.1:${port}${path}`))
  }
  const unanswered = (error: string) => ({ isDelivered: false, statusCode: null, error, answer: '' })

  test('closes the connection before it reads', async () => {
    const { port } = await startSocket((socket) => void socket.resetAndDestroy())
    expect((await ask(port)).error).toMatch(/^(?:reset|connect)$/)
  })

  test('closes the connection after it read', async () => {
    const receiver = await startReceiver((response) => void response.destroy())
    expect(await ask(receiver.port)).toMatchObject({ ...unanswered('reset'), address: '127.0.0.1' })
    expect(receiver.arrived).toHaveLength(1)
  })

  test('is silent', async () => {
    const receiver = await startReceiver(() => {})
    expect(await ask(receiver.port, 250)).toMatchObject(unanswered('timeout'))
  })

  test('drips its head, a byte at a time', async () => {
    const { port } = await startSocket((socket) => {
      const head = 'HTTP/1.1 200 OK\r\nx-slow: '
      let at = 0
      const drip = setInterval(() => socket.write(head.charAt(at++) || 'x'), 20)
      socket.on('close', () => clearInterval(drip))
    })
    expect(await ask(port, 250)).toMatchObject(unanswered('timeout'))
  })

  test('drips its body, which changes nothing: the status had come', async () => {
    const receiver = await startReceiver((response) => {
      response.writeHead(200, { 'content-length': '1000' })
      const drip = setInterval(() => response.write('x'), 20)
      response.on('close', () => clearInterval(drip))
    })
    const result = await ask(receiver.port, 2_000)
    expect(result).toMatchObject({ isDelivered: true, statusCode: 200, error: null })
    expect(result.answer).toMatch(/^x{1,120}$/)
    expect(result.durationMs).toBeGreaterThanOrEqual(1_990)
  })

  test('takes the connection and never shakes hands', async () => {
    const { port } = await startSocket()
    const sender = startSender({}, { deadlineMs: 250 })
    const result = await sender.send(message(`https://127.0.0.1:${port}/`))
    expect(result).toMatchObject(unanswered('timeout'))
  })

  test('speaks no HTTP', async () => {
    const { port } = await startSocket((socket) => void socket.write('220 mail ready\r\n'))
    expect(await ask(port)).toMatchObject(unanswered('malformed'))
  })

  test('refuses the connection', async () => {
    expect(await ask(1)).toMatchObject({ ...unanswered('connect'), address: '127.0.0.1' })
  })

  test('has an unknown name', async () => {
    const sender = startSender({ resolve: names({ 'nobody.test': [] }).resolve })
    const sent = await sender.send(message('https://nobody.test/'))
    expect(sent).toMatchObject({ ...unanswered('dns'), address: null })
  })

  test('has a silent DNS', async () => {
    const sender = startSender({ resolve: () => new Promise(() => {}) }, { deadlineMs: 100 })
    expect(await sender.send(message('https://shop.test/'))).toMatchObject(unanswered('timeout'))
  })

  test('is not blamed for a delivery that the end of our service cuts off', async () => {
    const arrived = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const waiting = [...arrived]
    const receiver = await startReceiver(() => waiting.shift()?.resolve())
    const sender = startSender()
    const abort = new AbortController()
    const given = sender.send(message(`http://127.0.0.1:${receiver.port}/`), abort.signal)
    await arrived[0]?.promise
    abort.abort()
    expect(await given).toMatchObject(unanswered('aborted'))
    const last = sender.send(message(`http://127.0.0.1:${receiver.port}/`))
    await arrived[1]?.promise
    await sender.close()
    expect(await last).toMatchObject(unanswered('aborted'))
    const late = await sender.send(message(`http://127.0.0.1:${receiver.port}/`))
    expect(late).toMatchObject(unanswered('aborted'))
    expect(receiver.arrived).toHaveLength(2)
  })
})

describe('over TLS', () => {
  test.each([
    ['a trusted certificate, of this name', 'receiver.test', receiverCertificate, null],
    ['a certificate of an unknown authority', 'receiver.test', undefined, 'tls'],
    ['a certificate of another name', 'other.test', receiverCertificate, 'tls'],
    ['a certificate of a name, for an address', '127.0.0.1', receiverCertificate, 'tls'],
  ])('%s', async (_what, host, ca, error) => {
    const receiver = await startReceiver((response) => response.end('thanks'), true)
    const sender = startSender({ resolve: receiverNames.resolve }, ca === undefined ? {} : { ca })
    const result = await sender.send(message(`https://${host}:${receiver.port}/`))
    expect(result).toMatchObject({ isDelivered: error === null, error, address: '127.0.0.1' })
    expect(receiver.arrived).toHaveLength(error === null ? 1 : 0)
  })

  test('a receiver without TLS gets nothing', async () => {
    const receiver = await startReceiver((response) => response.end())
    const sent = await startSender().send(message(`https://127.0.0.1:${receiver.port}/`))
    expect(sent).toMatchObject({ isDelivered: false, error: 'tls' })
    expect(receiver.arrived).toEqual([])
  })
})

test('connections are kept while events follow each other', async () => {
  const receiver = await startReceiver((response) => response.end('ok'))
  const sender = startSender()
  for (let nth = 0; nth < 50; nth += 1) {
    expect((await sender.send(message(`http://127.0.0.1:${receiver.port}/`))).isDelivered).toBe(true)
  }
  expect(receiver.arrived).toHaveLength(50)
  expect(receiver.connections).toBeLessThanOrEqual(2)
})

test('a receiver that hangs delays no other receiver, even of the same host', async () => {
  const receiver = await startReceiver((response, { path }) => void (path === '/ok' && response.end()))
  const sender = startSender({}, { deadlineMs: 10_000 })
  const url = `http://127.0.0.1:${receiver.port}`
  const hanging = Array.from({ length: 64 }, () => sender.send(message(`${url}/hang`)))
  const others = await Promise.all(Array.from({ length: 20 }, () => sender.send(message(`${url}/ok`))))
  expect(others.filter(({ isDelivered }) => isDelivered)).toHaveLength(20)
  await sender.close()
  expect((await Promise.all(hanging)).every(({ error }) => error === 'aborted')).toBe(true)
})
