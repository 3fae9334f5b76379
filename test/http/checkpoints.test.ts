import { createClient as createEventClient } from 'graphql-sse'
import { createClient as createSocketClient } from 'graphql-ws'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { createOperations } from '../../src/graphql/operation.ts'
import { createGraphqlHandler } from '../../src/http/graphql.ts'
import { serveSubscriptions } from '../../src/http/subscriptions.ts'
import { eventually } from '../kit/eventually.ts'
import { serve } from '../kit/graphql.ts'

// A stream that shows few events of the log tells its client how far it is, so that the client can resume.

const { url, fixture } = serve((server, { services, schema }) => {
  const operations = createOperations(schema, { checkpointMs: 20 })
  server.on('request', createGraphqlHandler({ services, operations, isDraining: () => false }))
  const sockets = serveSubscriptions({ services, operations, server })
  return () => sockets.close()
})
const { ticks, services } = fixture

beforeEach(() => {
  ticks.head = 0
})
const open: Watched[] = []
afterEach(async () => {
  for (const watched of open.splice(0)) watched.end()
  await eventually(() => ticks.open === 0 && services.streams.size === 0)
})

interface Result {
  data?: { ticks: { n: number } } | null
  extensions?: { checkpoint: string }
}

interface Watched {
  results: Result[]
  end: () => void
}

function watch(transport: 'WebSocket' | 'events', args: string, directive = '@checkpoints'): Watched {
  const authorization = `Bearer ${fixture.issue()}`
  const client =
    transport === 'WebSocket'
      ? createSocketClient({
          url: url().replace('http', 'ws'),
          webSocketImpl: WebSocket,
          connectionParams: { authorization },
        })
      : createEventClient({ url: url(), headers: { authorization }, retryAttempts: 0 })
  const results: Result[] = []
  const next = (result: unknown) => void results.push(result as Result)
  const query = `subscription ${directive} { ticks(${args}) { n } }`
  const stop = client.subscribe({ query }, { next, error: () => {}, complete: () => {} })
  const watched = {
    results,
    end() {
      stop()
      void client.dispose()
    },
  }
  open.push(watched)
  return watched
}

const checkpoint = (cursor: number) => ({ data: null, extensions: { checkpoint: String(cursor) } })
const tick = (n: number) => ({ data: { ticks: { n } } })

describe.each(['WebSocket', 'events'] as const)('over %s', (transport) => {
  test('a client that asks gets its start, and how far the stream is when it shows nothing', async () => {
    ticks.head = 7
    const { results } = watch(transport, 'every: 1000')
    await eventually(() => expect(results).toEqual([checkpoint(7)]))
    ticks.advance(640)
    await eventually(() => expect(results.at(-1)).toEqual(checkpoint(640)))
    ticks.advance(1_000)
    await eventually(() => expect(results.at(-1)).toEqual(tick(1_000)))
    // The client knows this cursor from the result itself.
    await new Promise((resolve) => setTimeout(resolve, 60))
    expect(results.at(-1)).toEqual(tick(1_000))
  })

  test('a client that does not ask gets results alone', async () => {
    const { results } = watch(transport, 'every: 1000', '')
    await eventually(() => ticks.open === 1)
    ticks.advance(999)
    await new Promise((resolve) => setTimeout(resolve, 60))
    ticks.advance(1_000)
    await eventually(() => expect(results).toEqual([tick(1_000)]))
  })

  test('a checkpoint never comes before an event that it covers', async () => {
    const { results, end } = watch(transport, 'every: 3')
    await eventually(() => results.length > 0)
    for (let n = 1; n <= 60; n += 1) {
      ticks.advance(n * 11)
      await new Promise((resolve) => setTimeout(resolve, 3))
    }
    await eventually(() => expect(results.at(-1)).toEqual(tick(660)))
    end()
    const positions = results.map(({ data, extensions }) => data?.ticks.n ?? Number(extensions?.checkpoint))
    expect(positions).toEqual(positions.toSorted((a, b) => a - b))
    expect(positions.filter((_, index) => results[index]?.data)).toEqual(
      Array.from({ length: 220 }, (_, index) => (index + 1) * 3),
    )
    expect(results.filter(({ data }) => data === null).length).toBeGreaterThan(1)
  })

  test('a client that resumes from its checkpoint has the log read from there', async () => {
    ticks.head = 5_000
    const first = watch(transport, 'after: "0", every: 4000')
    await eventually(() => expect(first.results.at(-1)).toEqual(checkpoint(5_000)))
    expect(first.results.filter(({ data }) => data)).toEqual([tick(4_000)])
    first.end()
    await eventually(() => ticks.open === 0)
    const before = ticks.pulled
    ticks.head = 5_010
    const again = watch(transport, 'after: "5000", every: 4000')
    await eventually(() => expect(again.results.at(-1)).toEqual(checkpoint(5_010)))
    expect(ticks.pulled - before).toBe(10)
  })
})

test('a browser learns the cursor from the ids of its event stream, without a result', async () => {
  ticks.head = 7
  const stop = new AbortController()
  const query = encodeURIComponent('subscription { ticks(every: 1000) { n } }')
  const headers = { authorization: `Bearer ${fixture.issue()}`, accept: 'text/event-stream' }
  const { body } = await fetch(`${url()}?query=${query}`, { headers, signal: stop.signal })
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (!text.includes('id: 7\n\n')) text += (await reader?.read())?.value ?? ''
  ticks.advance(500)
  while (!text.includes('id: 500\n\n')) text += (await reader?.read())?.value ?? ''
  expect(text).not.toContain('event:')
  stop.abort()
})
