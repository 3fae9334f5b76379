import { type IncomingMessage, request } from 'node:http'
import { createClient } from 'graphql-sse'
import { afterEach, expect, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import { createOperations } from '../../src/graphql/operation.ts'
import { createGraphqlHandler } from '../../src/http/graphql.ts'
import { limits } from '../../src/shared/limits.ts'
import { serve } from '../kit/graphql.ts'

let isDraining = false
const { url, fixture } = serve((server, { services, schema }) => {
  server.on(
    'request',
    createGraphqlHandler({ services, operations: createOperations(schema), isDraining: () => isDraining }),
  )
  return () => {}
})
const { ticks, services } = fixture

afterEach(async () => {
  isDraining = false
  ticks.paddingBytes = 0
  await eventually(() => ticks.open === 0 && services.streams.size === 0)
})

const clientOf = (token: string) =>
  createClient({ url: url(), headers: { Authorization: `Bearer ${token}` }, retryAttempts: 0 })

/** Opens a stream by hand. @param token null for none */
function open(query: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  const authorization = `Bearer ${fixture.issue()}`
  const common = { authorization, accept: 'text/event-stream', 'content-type': 'application/json' }
  return new Promise((resolve, reject) => {
    const sent = request(url(), { method: 'POST', headers: { ...common, ...headers } }, resolve)
    sent.on('error', reject)
    sent.end(JSON.stringify({ query }))
  })
}

/** Collects the events until `isEnough`, then hangs up. */
async function readUntil(message: IncomingMessage, isEnough: (text: string) => boolean): Promise<string> {
  let text = ''
  for await (const part of message as AsyncIterable<Buffer>) {
    text += String(part)
    if (isEnough(text)) break
  }
  message.destroy()
  return text
}

test('a graphql-sse client gets every event in order, and its end frees the slot', async () => {
  const events = clientOf(fixture.issue()).iterate({ query: 'subscription { ticks(after: "0") { n } }' })
  ticks.advance(3)
  const seen: unknown[] = []
  for await (const event of events) {
    seen.push(event.data?.['ticks'])
    if (seen.length === 3) break
  }
  expect(seen).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
})

test('each event names its cursor, with any selection of fields', async () => {
  ticks.advance(2)
  const stream = await open('subscription { ticks(after: "0") { __typename } }')
  expect(stream.headers['content-type']).toBe('text/event-stream; charset=utf-8')
  const text = await readUntil(stream, (sofar) => sofar.includes('id: 2') && sofar.endsWith('\n\n'))
  expect(text).toBe(
    'retry: 1000\n\nid: 0\n\n' +
      'id: 1\nevent: next\ndata: {"data":{"ticks":{"__typename":"Tick"}}}\n\n' +
      'id: 2\nevent: next\ndata: {"data":{"ticks":{"__typename":"Tick"}}}\n\n',
  )
})

test('a reader that comes back goes on after its last event, unless it names a later cursor', async () => {
  ticks.advance(5)
  const resumed = await open('subscription { ticks { n } }', { 'last-event-id': '3' })
  expect(await readUntil(resumed, (text) => text.includes('"n":5'))).not.toContain('"n":3')
  // A browser repeats the cursor of its first connection.
  for (const [after, first] of [
    [1, 4],
    [4, 5],
  ]) {
    const fromCursor = await open(`subscription { ticks(after: "${after}") { n } }`, { 'last-event-id': '3' })
    expect(await readUntil(fromCursor, (text) => text.includes('"n":'))).toContain(
      `id: ${first}\nevent: next\ndata: {"data":{"ticks":{"n":${first}`,
    )
  }
})

test('a browser may subscribe by GET; a query over an event stream is one event and its end', async () => {
  ticks.advance(1)
  const headers = { authorization: `Bearer ${fixture.issue()}`, accept: 'text/event-stream' }
  const query = encodeURIComponent('subscription { ticks(after: "0") { n } }')
  const answered = await fetch(`${url()}?query=${query}`, { headers })
  const reader = answered.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (!text.includes('"n":1')) text += (await reader?.read())?.value ?? ''
  await reader?.cancel()
  const single = await fetch(`${url()}?query={hello}`, { headers })
  expect(await single.text()).toMatch(
    /event: next\ndata: \{"data":\{"hello":"hello world"\}.*\n\nevent: complete\ndata:\n\n$/s,
  )
})

test('a refused subscription never starts: 401, 403, or an error and the end', async () => {
  const statuses = [
    (await open('subscription { ticks { n } }', { authorization: 'Bearer nonsense' })).statusCode,
    (
      await open('subscription { ticks { n } }', {
        authorization: `Bearer ${fixture.issue({ scopes: ['pay'] })}`,
      })
    ).statusCode,
  ]
  expect(statuses).toEqual([401, 403])
  const invalid = await readUntil(await open('subscription { nothing }'), () => false)
  expect(invalid).toMatch(
    /^.*event: next\ndata: .*GRAPHQL_VALIDATION_FAILED.*\n\nevent: complete\ndata:\n\n$/s,
  )
})

test('a source that fails is masked, reported and ended', async () => {
  const text = await readUntil(await open('subscription { broken { n } }'), () => false)
  expect(text).toContain('INTERNAL_SERVER_ERROR')
  expect(text).not.toContain('hunter2')
  expect(text).toMatch(/event: complete\ndata:\n\n$/)
})

test('a token has a limited number of streams, and gets the slots back', async () => {
  const token = fixture.issue()
  const headers = { authorization: `Bearer ${token}` }
  const query = 'subscription { ticks { n } }'
  const streams = await Promise.all(
    Array.from({ length: limits.subscriptionsPerTokenMax }, () => open(query, headers)),
  )
  await eventually(() => services.streams.get('merchant:1') === limits.subscriptionsPerTokenMax)
  expect(await readUntil(await open(query, headers), () => false)).toContain('TOO_MANY_SUBSCRIPTIONS')
  for (const stream of streams) stream.destroy()
  await eventually(() => services.streams.size === 0)
  const again = await open(query, headers)
  await eventually(() => ticks.open === 1)
  again.destroy()
})

/** Opens a stream with a token that lives so long; with a longer one where a slow machine misses its end. */
async function openFor(expiresInMs: number): Promise<{ token: string; stream: IncomingMessage }> {
  const until = performance.now() + expiresInMs
  const token = fixture.issue({ expiresInMs })
  const stream = await open('subscription { ticks { n } }', { authorization: `Bearer ${token}` })
  await eventually(() => ticks.open === 1 || performance.now() > until)
  if (ticks.open === 1) return { token, stream }
  stream.destroy()
  return openFor(expiresInMs * 3)
}

test.each([
  ['revoked', 3_600_000, (token: string) => fixture.revoke(token)],
  ['expired', 300, () => {}],
])('a stream whose token is %s ends with the reason', async (_how, expiresInMs, end) => {
  const { token, stream } = await openFor(expiresInMs)
  end(token)
  const text = await readUntil(stream, () => false)
  expect(text).toMatch(/event: next\ndata: .*"code":"UNAUTHENTICATED".*\n\nevent: complete\ndata:\n\n$/s)
})

test('a reader that stalls stops the source, loses no event and goes on', async () => {
  ticks.paddingBytes = 64 * 1_024
  ticks.advance(2_000)
  const before = ticks.pulled
  const stream = await open('subscription { ticks(after: "0") { n padding } }')
  stream.pause()
  let pulled = -1
  while (pulled !== ticks.pulled) {
    pulled = ticks.pulled
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
  expect(pulled - before).toBeLessThan(300)
  const text = await readUntil(stream, (sofar) => sofar.length > 400 * ticks.paddingBytes)
  const seen = [...text.matchAll(/^id: (\d+)\nevent/gm)].map(([, id]) => Number(id))
  expect(seen).toEqual(seen.map((_, index) => index + 1))
  expect(seen.length).toBeGreaterThanOrEqual(400)
})

test('the end of the service cuts the stream without completing it, so that clients come back', async () => {
  const stream = await open('subscription { ticks { n } }')
  await eventually(() => ticks.open === 1)
  isDraining = true
  expect(await readUntil(stream, () => false)).toBe(`retry: 1000\n\nid: ${ticks.head}\n\n`)
})
