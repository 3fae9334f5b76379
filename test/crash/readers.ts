import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from 'graphql-ws'
import type { Merchant } from './workload.ts'

/** An event as a reader recorded it. */
export interface RecordedEvent {
  sequence: number
  reference: string
  type: string
  status: string
}

/** A reader of a merchant's events that fails at random and goes on from its cursor. */
export interface FollowingReader {
  name: string
  merchantId: number
  /**
   * The events in the order of their recording; an event at which the reader failed comes again and is
   * recorded then.
   */
  recorded: RecordedEvent[]
  /** Complaints: an event that differed between two readings, a refused cursor. */
  complaints: string[]
  /** How many connections brought an event. */
  connections(): number
  stop(): Promise<void>
}

interface Event extends RecordedEvent {
  cursor: string
}

/** Yields the events after a cursor until the connection ends. */
type Connection = (
  merchant: Merchant,
  after: string,
  signal: AbortSignal,
) => AsyncGenerator<Event, void, void>

/** The ways to read: over a WebSocket, as server-sent events, and page by page over short streams. */
export function startReaders(
  urls: readonly string[],
  merchants: readonly Merchant[],
  random: () => number,
): FollowingReader[] {
  return merchants.flatMap((merchant, n) =>
    Object.entries(waysTo(urls[n % urls.length] ?? '')).map(([name, way]) =>
      startReader(name, merchant, way, random),
    ),
  )
}

function waysTo(url: string): Record<string, { connect: Connection; pageMax: number }> {
  return {
    'graphql-ws': { connect: webSocket(url), pageMax: Number.POSITIVE_INFINITY },
    'server-sent events': { connect: serverSentEvents(url), pageMax: Number.POSITIVE_INFINITY },
    'page by page': { connect: serverSentEvents(url), pageMax: 40 },
  }
}

/**
 * The share of events at which the reader fails: half of the failures come before the event is recorded, half
 * after.
 */
const failureShare = 0.02
const pauseMs = 50

function startReader(
  name: string,
  merchant: Merchant,
  way: { connect: Connection; pageMax: number },
  random: () => number,
): FollowingReader {
  const recorded: RecordedEvent[] = []
  const complaints: string[] = []
  const seen = new Map<number, string>()
  const ending = new AbortController()
  let cursor = '0'
  let connections = 0

  async function readOnce(): Promise<void> {
    const cut = new AbortController()
    const stop = () => cut.abort()
    ending.signal.addEventListener('abort', stop, { once: true })
    let count = 0
    try {
      for await (const { cursor: next, ...event } of way.connect(merchant, cursor, cut.signal)) {
        if (count === 0) connections += 1
        count += 1
        checkUnchanged(event)
        const chance = random()
        if (chance < failureShare / 2) return
        recorded.push(event)
        cursor = next
        if (chance < failureShare || count >= way.pageMax) return
      }
    } catch (error) {
      if (error instanceof RefusedError) complaints.push(`${name}: ${error.message}`)
    } finally {
      ending.signal.removeEventListener('abort', stop)
      cut.abort()
    }
  }

  /** Complains where an event differs from an earlier reading of it. */
  function checkUnchanged(event: RecordedEvent): void {
    const words = JSON.stringify(event)
    const before = seen.get(event.sequence) ?? words
    if (before !== words) complaints.push(`${name}: ${before} was read as ${words}`)
    seen.set(event.sequence, words)
  }

  async function follow(): Promise<void> {
    while (!ending.signal.aborted) {
      await readOnce()
      await sleep(pauseMs)
    }
  }
  const following = follow()
  return {
    name,
    merchantId: merchant.id,
    recorded,
    complaints,
    connections: () => connections,
    async stop() {
      ending.abort()
      await following
    },
  }
}

/** The service answered with a refusal. */
class RefusedError extends Error {}

const fields = 'cursor sequence reference type status'

function eventOf(result: {
  data?: unknown
  errors?: readonly { message: string; extensions?: { code?: unknown } }[] | undefined
}): Event {
  const data = result.data as { transactionChanged?: Event } | null | undefined
  if (data?.transactionChanged) return data.transactionChanged
  const [error] = result.errors ?? []
  const code = error?.extensions?.code
  // An answer that the service gives while its database is away is no refusal.
  if (typeof code === 'string' && !passing.has(code)) throw new RefusedError(`${code} ${error?.message}`)
  throw new Error('no event')
}

const passing: ReadonlySet<string> = new Set([
  'INTERNAL',
  'INTERNAL_SERVER_ERROR',
  'OVERLOADED',
  'SERVICE_DOWN',
  'RATE_LIMITED',
  'TOO_MANY_SUBSCRIPTIONS',
])

function webSocket(url: string): Connection {
  return async function* connect({ authorization }, after, signal) {
    const client = createClient({
      url: `${url.replace('http', 'ws')}/graphql`,
      connectionParams: { authorization },
      retryAttempts: 0,
    })
    const end = () => client.terminate()
    signal.addEventListener('abort', end, { once: true })
    try {
      const query = `subscription ($after: String!) { transactionChanged(after: $after) { ${fields} } }`
      for await (const result of client.iterate({ query, variables: { after } })) yield eventOf(result)
    } finally {
      client.terminate()
    }
  }
}

function serverSentEvents(url: string): Connection {
  return async function* connect({ authorization }, after, signal) {
    const query = encodeURIComponent(`subscription { transactionChanged { ${fields} } }`)
    const answer = await fetch(`${url}/graphql?query=${query}`, {
      headers: { authorization, accept: 'text/event-stream', 'last-event-id': after },
      signal,
    })
    if (!answer.body) return
    let text = ''
    for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
      text += chunk
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        const data = /^data: (.+)$/m.exec(block)?.[1]
        if (data !== undefined) yield eventOf(JSON.parse(data))
      }
    }
  }
}
