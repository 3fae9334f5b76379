import { request } from 'node:http'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { eventually } from '../kit/eventually.ts'
import { createOperations } from '../../src/graphql/operation.ts'
import { createGraphqlHandler } from '../../src/http/graphql.ts'
import { serveSubscriptions } from '../../src/http/subscriptions.ts'
import { limits } from '../../src/shared/limits.ts'
import { serve } from '../kit/graphql.ts'
import { strength } from '../kit/strength.ts'
import { useBounds } from '../kit/use-bounds.ts'

/** The number of readers under load; 5,000 by hand. */
const loadReaders = Number(process.env['LOAD_READERS'] ?? strength(100, 300))
const stallMs = 1_500

const { url, fixture } = serve((server, { services, schema }) => {
  const operations = createOperations(schema, { stallMs })
  server.on('request', createGraphqlHandler({ services, operations, isDraining: () => false }))
  const sockets = serveSubscriptions({ services, operations, server })
  return () => sockets.close()
})
const { ticks, services } = fixture

const open: { end(): void }[] = []
afterEach(async () => {
  for (const reader of open.splice(0)) reader.end()
  ticks.paddingBytes = 0
  await eventually(() => ticks.open === 0 && services.streams.size === 0)
})

const follow =
  'subscription ($after: String, $b: Boolean = true) { ticks(after: $after) { n padding @include(if: $b) } }'
const startsAt = (cursor: string) => follow.replace('$after: String, ', '').replace('$after', `"${cursor}"`)
type Variables = Record<string, unknown>

interface Reader {
  seen: number[]
  /** The error that came instead of events. */
  refusal: string | null
  /** True once the service has cut the reader off. */
  isCut: boolean
  stall(): void
  end(): void
}

function record(reader: Reader, text: string): void {
  if (text.includes('"errors"')) reader.refusal = text
  for (const [, n] of text.matchAll(/"n":(\d+)/g)) reader.seen.push(Number(n))
}

async function overSocket(token: string, query = follow, variables: Variables = {}): Promise<Reader> {
  const socket = new WebSocket(url().replace('http', 'ws'), 'graphql-transport-ws')
  const reader: Reader = {
    seen: [],
    refusal: null,
    isCut: false,
    stall: () => socket.pause(),
    end: () => socket.terminate(),
  }
  open.push(reader)
  await new Promise((resolve) => socket.once('open', resolve))
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }))
  await new Promise((resolve) => socket.once('message', resolve))
  socket.on('message', (data: Buffer) => record(reader, data.toString()))
  socket.send(JSON.stringify({ type: 'subscribe', id: 'one', payload: { query, variables } }))
  return reader
}

function overEvents(token: string, query = follow): Promise<Reader> {
  const headers = {
    authorization: `Bearer ${token}`,
    accept: 'text/event-stream',
    'content-type': 'application/json',
  }
  return new Promise((resolve, reject) => {
    const sent = request(url(), { method: 'POST', headers }, (message) => {
      const reader: Reader = {
        seen: [],
        refusal: null,
        isCut: false,
        stall: () => message.pause(),
        end: () => message.destroy(),
      }
      open.push(reader)
      let rest = ''
      message.on('data', (part: Buffer) => {
        const texts = (rest + part.toString()).split('\n\n')
        rest = texts.pop() ?? ''
        record(reader, texts.join('\n\n'))
      })
      message.on('error', () => {
        reader.isCut = true
      })
      resolve(reader)
    })
    sent.on('error', reject)
    sent.end(JSON.stringify({ query }))
  })
}

const upTo = (last: number) => Array.from({ length: last }, (_, n) => n + 1)

describe('equal subscriptions are executed together', () => {
  const shop = () => fixture.issue()
  const differing: [string, () => Promise<Reader>, number][] = [
    ['another token with the same scopes', () => overSocket(shop()), 1],
    ['another start', () => overSocket(shop(), follow, { after: '0' }), 1],
    ['another merchant', () => overSocket(fixture.issue({ merchantId: 2 })), 2],
    ['other scopes', () => overSocket(fixture.issue({ scopes: ['balance'] })), 2],
    ['another document', () => overSocket(shop(), follow.replace('n padding', 'n')), 2],
    ['another variable', () => overSocket(shop(), follow, { b: false }), 2],
    ['another writing', () => overSocket(shop(), `# The same.\n${follow.replaceAll(' ', '\n')}`), 1],
    ['a start in the document', () => overSocket(shop(), startsAt('0')), 1],
    ['checkpoints', () => overSocket(shop(), follow.replace(') {', ') @checkpoints {')), 1],
    ['a variable that is not declared', () => overSocket(shop(), follow, { unknown: 1 }), 1],
  ]
  test.each(differing)('a subscription that differs by %s: %#', async (_what, openOther, logs) => {
    ticks.advance(0)
    const [one, other] = [await overSocket(shop()), await openOther()]
    await eventually(() => [...services.streams.values()].reduce((sum, count) => sum + count, 0) === 4)
    ticks.advance(3)
    await eventually(() => one.seen.length === 3 && other.seen.length === 3)
    expect([one.seen, other.seen]).toEqual([upTo(3), upTo(3)])
    // The number of times that the log is read.
    expect(ticks.open).toBe(logs)
    ticks.head = 0
  })
})

test('a merchant may have 32 different subscriptions: no event is executed more often', async () => {
  ticks.advance(0)
  const max = limits.subscriptionKindsPerMerchantMax
  const count = max + limits.subscriptionsPerTokenMax
  const differing = (n: number) => follow.replace('{ n ', `{ a${n}: n n `)
  const readers: Reader[] = []
  for (let token = '', n = 0; n < count; n += 1) {
    if (n % limits.subscriptionsPerTokenMax === 0) token = fixture.issue()
    readers.push(await (n % 2 === 0 ? overEvents : overSocket)(token, differing(n)))
  }
  await eventually(() => readers.filter(({ refusal }) => refusal !== null).length === count - max)
  expect(services.streams.get('merchant:1')).toBe(max)
  const kept = readers.filter(({ refusal }) => refusal === null)
  for (const { refusal } of readers.slice(max))
    expect(refusal).toMatch(
      /"errors":\[\{"message":"A merchant has at most 32 .+"TOO_MANY_SUBSCRIPTIONS","limit":32/,
    )

  // An equal subscription does not count again, and another merchant has its own count.
  kept.push(await overSocket(fixture.issue(), differing(0)))
  kept.push(await overSocket(fixture.issue({ merchantId: 2 })))
  await eventually(() => ticks.open === max + 1)
  ticks.advance(1)
  await eventually(() => kept.every(({ seen }) => seen.length === 1))
  expect(ticks.open).toBe(max + 1)

  readers[1]?.end()
  await eventually(() => ticks.open === max)
  const next = await overEvents(fixture.issue(), differing(count))
  await eventually(() => ticks.open === max + 1)
  expect(next.refusal).toBeNull()
  ticks.head = 0
})

test('subscriptions to one object count for this object alone, 32 different ones each', async () => {
  ticks.advance(0)
  const max = limits.subscriptionKindsPerObjectMax
  const readers: Reader[] = []
  const narrowed = (n: number, of: string) =>
    follow.replace('(after: $after) { n ', `(after: $after, of: "${of}") { a${n}: n n `)
  for (let token = '', n = 0; n < max * 3; n += 1) {
    if (n % limits.subscriptionsPerTokenMax === 0) token = fixture.issue()
    readers.push(await overSocket(token, narrowed(n, n < max ? 'payment:1' : `payment:${n}`)))
  }
  const refused = await overSocket(fixture.issue(), narrowed(max * 3, 'payment:1'))
  await eventually(() => refused.refusal !== null)
  expect(refused.refusal).toContain('at most 32 different subscriptions to one object at a time')
  // All objects of the merchant have a bound too.
  const bounds: { subscriptionKindsOfObjectsMax: number } = limits
  useBounds(bounds, { subscriptionKindsOfObjectsMax: max * 3 }, onTestFinished)
  const beyond = await overSocket(fixture.issue(), narrowed(0, 'payment:0'))
  await eventually(() => beyond.refusal !== null)
  expect(beyond.refusal).toContain(`at most ${max * 3} different subscriptions to single objects at a time`)
  readers.push(await overSocket(fixture.issue({ merchantId: 2 }), narrowed(0, 'payment:1')))
  readers.push(await overSocket(fixture.issue(), follow))
  await eventually(() => ticks.open === readers.length)
  ticks.advance(1)
  await eventually(() => readers.every(({ seen, refusal }) => seen.length === 1 && refusal === null))
  ticks.head = 0
})

test('a reader of an event stream that stalls is cut off, and comes back with its cursor', async () => {
  ticks.advance(0)
  ticks.paddingBytes = 64 * 1_024
  const [stalled, healthy] = [await overEvents(fixture.issue()), await overEvents(fixture.issue())]
  await eventually(() => services.streams.get('merchant:1') === 2)
  stalled.stall()
  ticks.advance(300)
  await eventually(() => services.streams.get('merchant:1') === 1)
  await eventually(() => healthy.seen.length === 300)
  expect(stalled.seen.length).toBeLessThan(300)
  ticks.head = 0
})

test(`${loadReaders} readers, a tenth of them stalled, all get every event`, {
  timeout: 180_000 + loadReaders * 100,
}, async () => {
  ticks.advance(0)
  ticks.paddingBytes = 1_024
  // More than the system buffers for a connection: 12 MB for each reader that stalls.
  const copies = Array.from({ length: 28 }, (_, n) => `c${n}: padding`).join(' ')
  const large = `subscription { ticks { n ${copies} } }`
  const isLazy = (index: number) => index % 10 < 1
  const healthy: Reader[] = []
  const stalled: Reader[] = []
  for (let first = 0; first < loadReaders; first += limits.subscriptionsPerTokenMax) {
    const token = fixture.issue()
    const opened = await Promise.all(
      Array.from({ length: limits.subscriptionsPerTokenMax }, (_, index) =>
        (index % 3 === 0 ? overEvents : overSocket)(token, isLazy(index) ? large : follow),
      ),
    )
    for (const [index, reader] of opened.entries()) (isLazy(index) ? stalled : healthy).push(reader)
  }
  await eventually(() => services.streams.get('merchant:1') === healthy.length + stalled.length)
  for (const reader of stalled) reader.stall()
  const before = ticks.pulled
  for (let last = 20; last <= 400; last += 20) {
    ticks.advance(last)
    await eventually(() => healthy.every(({ seen }) => seen.length === last))
  }
  for (const { seen } of healthy) expect(seen).toEqual(upTo(400))
  // The healthy ones share one reading; for a stalled one the log is read as far as its connection has room.
  expect(ticks.pulled - before - 400).toBeLessThan(stalled.length * 200)
  await eventually(() => services.streams.get('merchant:1') === healthy.length)
  ticks.head = 0
})
