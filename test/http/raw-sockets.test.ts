import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { startTestApp } from '../kit/app.ts'

// Bytes that no well-behaved client sends: smuggling, oversized heads, dribbling, half requests.

const service = await startTestApp()
const shop = await service.merchant()
afterAll(() => service.close())
const { hostname, port } = new URL(service.url)

const pay = '/merchant/api/pay'
const authorization = `Authorization: Bearer ${shop.token}`
const payment = (reference: string) =>
  JSON.stringify({ amount: 500, customer_phone: '70110001', payment_method: 'OperatorA', reference })

function open(): Promise<Socket> {
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  return once(socket, 'connect').then(() => socket)
}

/** Sends bytes. @returns all bytes that come back until the other side closes */
async function send(...parts: (string | Buffer)[]): Promise<string> {
  const socket = await open()
  const answer: Buffer[] = []
  socket.on('data', (chunk) => answer.push(chunk))
  for (const part of parts) socket.write(part)
  await once(socket, 'close')
  return Buffer.concat(answer).toString('latin1')
}

const lines = (...all: string[]) => `${all.join('\r\n')}\r\n\r\n`
const chunked = 'Transfer-Encoding: chunked'
const requestHead = (...more: string[]) =>
  lines(`POST ${pay} HTTP/1.1`, 'Host: x', authorization, 'Content-Type: application/json', ...more)

function statusesOf(answer: string): number[] {
  return [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
}

/** The envelope in the body of an answer. */
function envelopeOf(answer: string) {
  return JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)) as Record<string, unknown>
}

async function paymentsUnder(reference: string): Promise<number> {
  const { rows } = await service.database.database.pool.query<{ n: number }>(
    'SELECT count(*)::int AS n FROM transaction WHERE reference = $1',
    [reference],
  )
  return rows[0]?.n ?? 0
}

const smuggled = requestHead(`Content-Length: ${payment('smuggled').length}`) + payment('smuggled')

describe('bytes that are no request are refused with the envelope, and the connection ends', () => {
  test.each<[string, number, string]>([
    [
      'both a length and chunks',
      400,
      requestHead('Content-Length: 4', 'Transfer-Encoding: chunked') + `0\r\n\r\n${smuggled}`,
    ],
    [
      'two lengths',
      400,
      `${requestHead('Content-Length: 0', `Content-Length: ${smuggled.length}`)}${smuggled}`,
    ],
    ['two lengths in one', 400, `${requestHead(`Content-Length: 0, ${smuggled.length}`)}${smuggled}`],
    ['a length below zero', 400, requestHead('Content-Length: -1')],
    ['a length that is no number', 400, requestHead('Content-Length: 1e3')],
    ['a length with a plus', 400, requestHead('Content-Length: +5')],
    ['chunks under another name', 400, `${requestHead('Transfer-Encoding: xchunked')}${smuggled}`],
    [
      'a chunk larger than any number',
      400,
      `${requestHead('Transfer-Encoding: chunked')}fffffffffffffffffff\r\n`,
    ],
    [
      'a chunk of no hexadecimal size',
      400,
      `${requestHead('Transfer-Encoding: chunked')}zz\r\n{}\r\n0\r\n\r\n`,
    ],
    ['lines that end in a bare line feed', 400, requestHead('Content-Length: 0').replaceAll('\r\n', '\n')],
    ['a header folded over two lines', 400, requestHead('X-Long: a\r\n b', 'Content-Length: 0')],
    ['a space before the colon', 400, requestHead('Content-Length : 0')],
    ['a NUL in a header', 400, requestHead('X-A: a\u0000b', 'Content-Length: 0')],
    ['no Host', 400, lines('GET /merchant/api/status HTTP/1.1')],
    ['no HTTP at all', 400, 'hello?\r\n\r\n'],
    ['TLS', 400, '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001'],
    ['HTTP/2 without asking', 400, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['17 KB of headers', 431, requestHead(`X-Big: ${'x'.repeat(17 * 1_024)}`)],
    [
      '17 KB of address',
      431,
      lines(`GET /merchant/api/status?${'x'.repeat(17 * 1_024)} HTTP/1.1`, 'Host: x'),
    ],
  ])('%s: %i', async (_what, status, bytes) => {
    const answer = await send(bytes)
    expect(statusesOf(answer)).toEqual([status])
    expect(answer).toMatch(/\r\nconnection: close\r\n/i)
    expect(envelopeOf(answer)).toEqual({
      success: false,
      message: expect.any(String),
      code: expect.any(String),
      docs: expect.stringMatching(/^\/docs\/errors#[A-Z_]+$/),
      request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
    expect(await paymentsUnder('smuggled')).toBe(0)
  })
})

describe('odd but readable requests', () => {
  test.each<[string, number, string]>([
    ['TRACE', 405, lines(`TRACE ${pay} HTTP/1.1`, 'Host: x', 'Connection: close')],
    ['a method of one letter less', 400, lines(`GE ${pay} HTTP/1.1`, 'Host: x', 'Connection: close')],
    ['HTTP/1.0', 200, lines('GET /merchant/api/status HTTP/1.0')],
    [
      'an absolute address',
      200,
      lines(`GET http://x/merchant/api/status HTTP/1.1`, 'Host: x', 'Connection: close'),
    ],
    [
      'a body in UTF-16',
      400,
      requestHead('Content-Length: 8', 'Connection: close') + '{\u0000"\u0000"\u0000}\u0000',
    ],
    [
      'a compressed body',
      415,
      `${requestHead('Content-Encoding: gzip', 'Content-Length: 2', 'Connection: close')}{}`,
    ],
    [
      'a broken gzip inside chunks',
      415,
      `${requestHead('Content-Encoding: gzip', chunked, 'Connection: close')}1\r\n{\r\n0\r\n\r\n`,
    ],
    ['a path of slashes', 404, lines('GET ////// HTTP/1.1', 'Host: x', 'Connection: close')],
    [
      'a path with dots',
      404,
      lines('GET /merchant/api/../../etc/passwd HTTP/1.1', 'Host: x', 'Connection: close'),
    ],
    [
      'a host that is none',
      200,
      lines('GET /merchant/api/status HTTP/1.1', 'Host: a b\\c', 'Connection: close'),
    ],
  ])('%s: %i', async (_what, status, bytes) => {
    const answer = await send(bytes)
    expect(statusesOf(answer)).toEqual([status])
    expect(await paymentsUnder('smuggled')).toBe(0)
  })

  test('CONNECT makes no tunnel', async () => {
    expect(
      statusesOf(await send(lines('CONNECT example.com:443 HTTP/1.1', 'Host: example.com:443'))),
    ).toEqual([])
  })

  test('two payments in one write are two answers, in order', async () => {
    const one = (reference: string, ...more: string[]) =>
      requestHead(`Content-Length: ${payment(reference).length}`, ...more) + payment(reference)
    const answer = await send(one('first') + one('second', 'Connection: close'))
    expect(statusesOf(answer)).toEqual([202, 202])
    expect(answer.indexOf('"first"')).toBeLessThan(answer.indexOf('"second"'))
  })

  test('garbage behind a payment does not spoil its answer, and nothing is paid twice', async () => {
    const socket = await open()
    const answer: Buffer[] = []
    socket.on('data', (chunk) => answer.push(chunk))
    socket.write(
      requestHead(`Content-Length: ${payment('before-garbage').length}`) + payment('before-garbage'),
    )
    socket.write('garbage garbage\r\n\r\n')
    await once(socket, 'close')
    const text = Buffer.concat(answer).toString()
    // The payment exists, whether or not its answer could still be sent; never half an answer in another.
    expect([[], [202]]).toContainEqual(statusesOf(text))
    expect(await paymentsUnder('before-garbage')).toBeLessThanOrEqual(1)
  })

  test('a body that breaks off makes no payment', async () => {
    const socket = await open()
    socket.write(`${requestHead('Content-Length: 200')}${payment('half')}`)
    socket.resume()
    socket.end()
    await once(socket, 'close')
    expect(await paymentsUnder('half')).toBe(0)
  })
})

test('500 connections that dribble their heads delay no other request', async () => {
  const slow = await Promise.all(Array.from({ length: 500 }, open))
  const dribble = setInterval(() => {
    for (const socket of slow) socket.write('X-Slow: 1\r\n')
  }, 100)
  for (const socket of slow) socket.write('GET /merchant/api/status HTTP/1.1\r\nHost: x\r\n')
  try {
    const answers = await Promise.all(Array.from({ length: 50 }, () => service.rest('GET', '/status')))
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 50 }, () => 200))
  } finally {
    clearInterval(dribble)
    for (const socket of slow) socket.destroy()
  }
})
