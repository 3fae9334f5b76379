import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { listenHttp } from '../../src/http/server.ts'
import { startTestApp } from '../kit/app.ts'
import { eventually } from '../kit/eventually.ts'

// A client may read its answer, leave out the rest of its body, and send its next request on the same
// connection. The service cannot tell that request from the body, so an early answer ends the connection.

const service = await startTestApp()
const shop = await service.merchant()
afterAll(() => service.close())
const { hostname, port } = new URL(service.url)

const authorization = `Authorization: Bearer ${shop.token}`
const head = (path: string, ...headers: readonly string[]) =>
  [`POST ${path} HTTP/1.1`, 'Host: x', 'Content-Type: application/json', ...headers].join('\r\n') + '\r\n\r\n'

/** A whole request that would make a payment. */
function payment(reference: string): string {
  const body = { amount: 500, customer_phone: '70110001', payment_method: 'OperatorA', reference }
  const text = JSON.stringify(body)
  return head('/merchant/api/pay', authorization, `Content-Length: ${text.length}`) + text
}

async function paymentsUnder(reference: string): Promise<number> {
  const found = await service.database.database.pool.query('SELECT FROM transaction WHERE reference = $1', [
    reference,
  ])
  return found.rowCount ?? 0
}

/** Opens a connection, and gives what came back so far. */
async function open(at = Number(port)) {
  const socket = connect(at, hostname)
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => {})
  let told = ''
  socket.on('data', (part) => (told += String(part)))
  const closed = new Promise((resolve) => socket.once('close', resolve))
  await once(socket, 'connect')
  return { socket, closed, told: () => told, statuses: () => told.match(/(?<=HTTP\/1\.1 )\d{3}(?= )/g) ?? [] }
}

/** The first part of each body; the rest never comes. */
const part = 'a'.repeat(200_000)
const framings = {
  length: ['Content-Length: 50000000', part],
  chunks: ['Transfer-Encoding: chunked', `200000\r\n${part}`],
} as const
const doors: readonly (readonly [why: string, status: string, path: string, ...headers: string[]])[] = [
  ['a path that does not exist', '404', '/merchant/api/nothing', authorization],
  ['a method that does not exist', '405', '/livez'],
  ['no token', '401', '/merchant/api/pay'],
  ['no token at GraphQL', '401', '/graphql', 'Authorization: Bearer none'],
  ['another type of body', '415', '/merchant/api/bulk/batches/import', authorization],
  ['a form of a payment link that is too large', '413', '/l/nothing'],
  ['a callback of no operator', '404', '/callbacks/nothing'],
]
const tooLarge: typeof doors = [
  ['a body that is too large', '413', '/merchant/api/pay', authorization],
  [
    'a body that is too large after 100 Continue',
    '413',
    '/merchant/api/pay',
    authorization,
    'Expect: 100-continue',
  ],
  ['a body that is too large at GraphQL', '413', '/graphql', authorization],
]
type Case = [framing: keyof typeof framings, ...door: (typeof doors)[number]]
const cases: Case[] = [
  ...[...doors, ...tooLarge].map((door): Case => ['length', ...door]),
  ...doors.map((door): Case => ['chunks', ...door]),
]

const isFinal = (status: string) => status !== '100'

test.each(cases)('a body by %s, for %s: %s ends the connection', async (...tried) => {
  const [framing, why, status, path, ...more] = tried
  const [header, begun] = framings[framing]
  const reference = `${framing} ${why}`.replaceAll(' ', '-')
  const client = await open()
  client.socket.write(head(path, ...more, header) + begun)
  await eventually(() => expect(client.told()).toMatch(/HTTP\/1\.1 [2-5].*?\r\n\r\n/s))
  expect(client.statuses().filter(isFinal)).toEqual([status])
  expect(client.told()).toMatch(/\r\nconnection: close\r\n/i)
  client.socket.end(payment(reference))
  await client.closed
  expect(client.statuses().filter(isFinal)).toEqual([status])
  expect(await paymentsUnder(reference)).toBe(0)
})

const hex = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`

test.each([
  ['a length', (body: string) => `Content-Length: ${body.length}\r\n\r\n${body}`],
  ['chunks', (body: string) => `Transfer-Encoding: chunked\r\n\r\n${hex(body)}0\r\n\r\n`],
])('a payment inside a refused body with %s is not made, nor one behind the body', async (name, framed) => {
  const references = [`inside-${name}`, `behind-${name}`].map((text) => text.replace(' ', '-'))
  const [inside = '', behind = ''] = references.map(payment)
  const body = `${'a'.repeat(2_000_000)}\r\n\r\n${inside}`
  const sent = head('/merchant/api/pay', authorization).slice(0, -2) + framed(body) + behind
  const client = await open()
  client.socket.write(sent.slice(0, 1_900_000))
  await eventually(() => expect(client.statuses()).toEqual(['413']))
  client.socket.write(sent.slice(1_900_000))
  await client.closed
  expect(client.statuses()).toEqual(['413'])
  for (const reference of references)
    expect([reference, await paymentsUnder(reference)]).toEqual([reference, 0])
})

test('a request behind a body that ends while its answer is sent is not handled', async () => {
  const handled: unknown[] = []
  const server = await listenHttp(
    '127.0.0.1',
    0,
    Promise.resolve((message, response) => {
      handled.push(message.url)
      response.writeHead(200, { 'Content-Length': 2 }).write('n')
      message.resume().once('end', () => setImmediate(() => response.end('o')))
    }),
  )
  onTestFinished(() => server.drain(0))
  const client = await open(server.port)
  client.socket.write(head('/first', 'Content-Length: 200000'))
  await eventually(() => expect(client.told()).toMatch(/\r\n\r\nn$/))
  client.socket.write(part + head('/second', 'Content-Length: 0'))
  await client.closed
  expect(client.told()).toMatch(/\r\n\r\nno$/)
  expect(handled).toEqual(['/first'])
})

test('an answer to a request that came as a whole keeps the connection', async () => {
  const client = await open()
  const asked = [
    ['200', 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['401', `${head('/merchant/api/pay', 'Content-Length: 2')}{}`],
    ['404', `${head('/merchant/api/nothing', 'Content-Length: 2')}{}`],
    ['405', head('/livez', 'Content-Length: 0')],
    ['400', `${head('/merchant/api/pay', authorization, 'Transfer-Encoding: chunked')}2\r\n{}\r\n0\r\n\r\n`],
    ['202', payment('kept')],
  ] as const
  for (const [n, [, bytes]] of asked.entries()) {
    client.socket.write(bytes)
    await eventually(() => expect(client.statuses()).toHaveLength(n + 1))
    expect(client.told()).not.toMatch(/\r\nconnection: close\r\n/i)
  }
  expect(client.statuses()).toEqual(asked.map(([status]) => status))
})
