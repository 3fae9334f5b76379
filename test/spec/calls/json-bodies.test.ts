import { once } from 'node:events'
import { beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import type { TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, openFixture } from '../../kit/fixture.ts'
import { limits } from '../../../src/shared/limits.ts'

// REST, GraphQL and WebSockets read JSON by the same rules, so that no door pays what another one refuses.

const fixture = await openFixture()
let shop: TestMerchant
beforeAll(async () => {
  shop = await fixture.merchant()
})

let payments = 0
/** The fields of a new payment, under the names of a door. */
function payment(phone: string, method: string): string {
  payments += 1
  const first = `"amount": 500, "${phone}": "${customer('11')}", "${method}": "OperatorA"`
  return `{${first}, "reference": "order-${payments}"}`
}

const query = `mutation ($input: CollectPaymentInput!) {
  collectPayment(input: $input) { ... on PaymentInitiation { reference } ... on Refusal { code } }
}`

interface Told {
  /** The HTTP status, or the code that closed the socket; 200 for a payment. */
  status: number
  text: string
}

/** The bytes of a text: each of its characters is one byte. */
const bytes = (text: string) => Buffer.from(text, 'latin1')

async function post(path: string, body: Buffer, type = 'application/json'): Promise<Told> {
  const headers = { authorization: `Bearer ${shop.token}`, 'content-type': type }
  const answer = await fetch(`${fixture.url}${path}`, { method: 'POST', headers, body: new Uint8Array(body) })
  return { status: answer.status, text: await answer.text() }
}

/** Sends frames of the protocol, and waits for an answer or the end of the socket. */
async function sendFrames(frames: readonly Buffer[], binary: boolean): Promise<Told> {
  const socket = new WebSocket(`${fixture.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws')
  const messages: string[] = []
  let closed: Told | null = null
  socket.on('message', (data: Buffer) => messages.push(data.toString()))
  socket.on('close', (status, reason) => {
    closed = { status, text: reason.toString() }
  })
  await once(socket, 'open')
  const payload = { authorization: `Bearer ${shop.token}` }
  socket.send(JSON.stringify({ type: 'connection_init', payload }))
  await eventually(() => messages.length === 1)
  for (const frame of frames) socket.send(frame, { binary })
  await eventually(() => closed !== null || messages.length > 1)
  socket.terminate()
  return closed ?? { status: 200, text: messages[1] ?? '' }
}

interface Door {
  /** Writes a body, each character a byte, around the fields of a payment. */
  body: (fields: string) => string
  fields: () => string
  send: (body: Buffer) => Promise<Told>
  /** The codes for bytes that are not UTF-8, and for JSON that is refused. */
  refusals: { bytes: number; json: number }
}

const operation = (fields: string) => `{"query": ${JSON.stringify(query)}, "variables": {"input": ${fields}}}`
const subscribe = (fields: string) => `{"id": "1", "type": "subscribe", "payload": ${operation(fields)}}`
const graphqlFields = () => payment('customerPhone', 'paymentMethod')
const http = { bytes: 400, json: 400 }
const socket = { bytes: 1007, json: 4400 }

const doors: Readonly<Record<string, Door>> = {
  REST: {
    body: (fields) => fields,
    fields: () => payment('customer_phone', 'payment_method'),
    send: (body) => post('/merchant/api/pay', body),
    refusals: http,
  },
  GraphQL: {
    body: operation,
    fields: graphqlFields,
    send: (body) => post('/graphql', body),
    refusals: http,
  },
  'a text frame': {
    body: subscribe,
    fields: graphqlFields,
    send: (body) => sendFrames([body], false),
    refusals: socket,
  },
  'a binary frame': {
    body: subscribe,
    fields: graphqlFields,
    send: (body) => sendFrames([body], true),
    refusals: socket,
  },
}

const byteOrderMark = '\xef\xbb\xbf'
const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`

/** Amounts that JavaScript reads as whole numbers within the limits, or as nothing at all. */
const fractions = [
  '500.00000000000000001',
  '499.99999999999999999',
  '1000000.00000000001',
  '5.0000000000000000001e2',
  '5000000000000000000001e-19',
  '500.1',
  '1e-400',
  '9007199254740991.4',
]

describe.each(Object.entries(doors))('by %s', (_name, { body, fields, send, refusals }) => {
  const changed = (from: string | RegExp, to: string) => bytes(body(fields().replace(from, to)))

  test.each<[string, () => Buffer]>([
    ['an accent in Latin-1', () => changed('order-', 'caf\xe9-')],
    ['half of a character', () => changed('order-', '\xc3-')],
    ['a single surrogate', () => changed('order-', '\xed\xa0\x80')],
    ['an overlong zero', () => changed('order-', '\xc0\x80')],
    ['a wrong byte in an unknown name', () => changed('{', '{"\xff": 1, ')],
    ['UTF-16 with its mark', () => Buffer.from(`\ufeff${body(fields())}`, 'utf16le')],
  ])('bytes that are not UTF-8 are refused, and nothing is recorded: %s', async (_what, sent) => {
    const before = await fixture.rowCounts()
    const { status, text } = await send(sent())
    expect([status, text]).toEqual([refusals.bytes, expect.stringMatching(/UTF-8/i)])
    expect(await fixture.rowCounts()).toEqual(before)
  })

  test.each<[string, () => Buffer, RegExp]>([
    ['a name twice', () => changed('{', '{"amount": 5000, '), /names \\?"amount\\?" twice/],
    ['a name twice, once escaped', () => changed('{', '{"am\\u006funt": 5000, '), /"amount\\?" twice/],
    ['an unknown name twice', () => changed('{', '{"x": [{"y": 1, "y": 2}], '), /"y\\?" twice/],
    ['levels without end', () => changed('{', `{"x": ${deep(limits.jsonDepthMax)}, `), /deeper than 20/],
    ['a comma too many', () => changed('}', ',}'), /JSON/],
    ['UTF-16 without its mark', () => Buffer.from(body(fields()), 'utf16le'), /JSON/],
    ['two marks of UTF-8', () => bytes(`${byteOrderMark}${byteOrderMark}${body(fields())}`), /JSON/],
  ])('JSON of two meanings or none is refused, and nothing is recorded: %s', async (_what, sent, words) => {
    const before = await fixture.rowCounts()
    const { status, text } = await send(sent())
    expect([status, text]).toEqual([refusals.json, expect.stringMatching(words)])
    expect(await fixture.rowCounts()).toEqual(before)
  })

  test.each(fractions)(
    'an amount of %s has a fraction: refused by its name, nothing recorded',
    async (number) => {
      const before = await fixture.rowCounts()
      const { text } = await send(changed('500', number))
      expect(text).toMatch(
        /amount.*must be a whole number of francs|must be a whole number of francs.*amount/is,
      )
      expect(await fixture.rowCounts()).toEqual(before)
    },
  )

  test.each(['5000.0', '5e3', '5000.00', '0.5e4', '5000.00000000000000000000', '50000000000000000000e-16'])(
    'an amount of %s is 5,000 francs',
    async (number) => {
      const sent = changed('500', number)
      const reference = `order-${payments}`
      expect((await send(sent)).text).toContain(reference)
      const { body: listed } = await fixture.rest('GET', `/transactions?reference=${reference}`, {
        token: shop.token,
      })
      expect(listed['data'].transactions).toMatchObject([{ reference, amount: 5_000 }])
    },
  )

  test('the mark of UTF-8 may stand before the JSON', async () => {
    const { status, text } = await send(bytes(byteOrderMark + body(fields())))
    expect([status < 300, text]).toEqual([true, expect.stringMatching(/"reference":"order-\d+"/)])
  })
})

test('a name that stands twice around the variables is refused', async () => {
  const before = await fixture.rowCounts()
  const whole = operation(graphqlFields())
  for (const name of ['query', 'variables', 'operationName', 'extensions']) {
    const { status, text } = await post(
      '/graphql',
      bytes(whole.replace('{', `{"${name}": {}, "${name}": {}, `)),
    )
    expect([status, text]).toEqual([400, expect.stringContaining('BAD_REQUEST')])
  }
  expect(await fixture.rowCounts()).toEqual(before)
})

test('a name that stands twice in the document is refused', async () => {
  const before = await fixture.rowCounts()
  const input = `amount: 500, customerPhone: "${customer('11')}", paymentMethod: OperatorA`
  for (const args of [`input: {${input}, amount: 5000}`, `input: {${input}}, input: {${input}}`]) {
    const { text } = await post(
      '/graphql',
      bytes(
        JSON.stringify({
          query: `mutation {
      collectPayment(${args}) { __typename }
    }`,
        }),
      ),
    )
    expect(text).toMatch(/There can be only one (input field|argument) named/)
  }
  expect(await fixture.rowCounts()).toEqual(before)
})

describe('a WebSocket', () => {
  test('that closes for a broken message runs none of the messages behind it', async () => {
    const before = await fixture.rowCounts()
    const frames = ['{"type": "ping", "type": "pong"}', subscribe(graphqlFields())]
    expect((await sendFrames(frames.map(bytes), false)).status).toBe(4400)
    expect(await fixture.rowCounts()).toEqual(before)
  })

  test('closes with its reason where that is longer than a close frame', async () => {
    const id = 'é'.repeat(1_000)
    const slow = JSON.stringify({ id, type: 'subscribe', payload: { query: live } })
    const { status, text } = await sendFrames([Buffer.from(slow), Buffer.from(slow)], false)
    expect([status, text]).toEqual([4409, expect.stringMatching(/^Subscriber for é+/)])
  })
})

const live = 'subscription { transactionChanged { reference } }'
