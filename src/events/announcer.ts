import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool, PoolClient } from 'pg'
import { openPieces, PieceTooLong } from '../database/pieces.ts'
import { sqlFunction } from '../database/sql-function.ts'
import type { Log } from '../telemetry/log.ts'

/** The shortest pause between two runs. Choice: clients do not notice 20 ms, and every run costs a commit. */
const eventPaceMs = 20

/**
 * The pause between two looks for events that were not announced. Choice: only the death of a process leaves
 * such events, and each look reads every webhook endpoint.
 */
export const announcerBounds = { pollMs: 10_000 }

/** Announces committed events: makes their deliveries, and notifies the readers of every process. */
export interface Announcer {
  /** Announces from now on what the sessions of a further pool commit. */
  hear(pool: Pool): void
  /** Ends the hearing, and resolves once the events heard so far are announced. */
  close(): Promise<void>
}

/** The most events for which one run makes deliveries. */
const eventsMax = 1_000

const announceEvents = sqlFunction('announce_events', {
  takes: { merchants: 'int[]', take: 'int' },
  gives: 'boolean',
})
const makeMissingDeliveries = sqlFunction('make_missing_deliveries', {
  takes: { take: 'int' },
  gives: 'boolean',
})

/**
 * Starts an announcer. It announces each event that a session of `pool` commits, so that no verb needs to
 * announce its own events. At its start, and then every `announcerBounds.pollMs`, it also makes the
 * deliveries of events that were not announced, because their process died.
 * @param pool sessions that write events, and through which the announcer works; `hear` adds others
 */
export function startAnnouncer(pool: Pool, log: Log): Announcer {
  const waiting = new Set<number>()
  let isPollDue = false
  let running: Promise<void> | null = null
  let closed = false
  let begun = -Infinity
  const runPiece = openPieces({ max: eventsMax })

  async function runOnce(): Promise<void> {
    const merchants = [...waiting]
    waiting.clear()
    const polls = isPollDue
    isPollDue = false
    const again = () => {
      for (const merchant of merchants) waiting.add(merchant)
      isPollDue ||= polls
    }
    try {
      await runPiece(async (take) => {
        if (merchants.length > 0 && (await announceEvents(pool, { merchants, take }))) again()
        if (polls && (await makeMissingDeliveries(pool, { take }))) isPollDue = true
      })
    } catch (error) {
      again()
      throw error
    }
  }

  async function run(): Promise<void> {
    while (waiting.size > 0 || isPollDue) {
      // The first event is announced at once; all events of the next 20 ms share one run and its commit.
      const early = begun + eventPaceMs - performance.now()
      if (early > 0 && !closed) await sleep(early)
      begun = performance.now()
      try {
        await runOnce()
      } catch (error) {
        log.warn({ err: error }, 'events could not be announced; trying again')
        // A smaller piece follows at once.
        if (closed || !(error instanceof PieceTooLong)) return
      }
    }
  }

  function start(): void {
    running ??= run().finally(() => {
      running = null
      if ((waiting.size > 0 || isPollDue) && !closed) setTimeout(start, retryMs).unref()
    })
  }

  function poll(): void {
    isPollDue = true
    start()
  }

  const stops: (() => void)[] = []
  function hear(writing: Pool): void {
    const stop = hearEvents(writing, (merchant) => {
      waiting.add(merchant)
      // The session is not in the pool yet: a run that started now would open one more.
      queueMicrotask(start)
    })
    stops.push(stop)
  }

  hear(pool)
  poll()
  const timer = setInterval(poll, announcerBounds.pollMs).unref()
  return {
    hear,
    async close() {
      for (const stop of stops) stop()
      closed = true
      clearInterval(timer)
      start()
      await running
    },
  }
}

const retryMs = 200

/** The code of the message in which `append_events` names merchants, with commas between their ids. */
const eventsAppended = 'MP002'

/**
 * Hears in each session of a pool which merchants get events, and names these merchants when the session
 * comes back to the pool: its transaction has ended then. After a rollback it names them too, which costs one
 * run that finds no event.
 * @returns a function that ends the hearing
 */
function hearEvents(pool: Pool, name: (merchantId: number) => void): () => void {
  const heard = new WeakMap<PoolClient, Set<number>>()
  const onAcquire = (client: PoolClient) => {
    if (heard.has(client)) return
    const merchants = new Set<number>()
    heard.set(client, merchants)
    client.on('notice', ({ code, message }) => {
      if (code === eventsAppended) for (const id of (message ?? '').split(',')) merchants.add(Number(id))
    })
  }
  const onRelease = (_error: Error, client: PoolClient) => {
    const merchants = heard.get(client)
    merchants?.forEach(name)
    merchants?.clear()
  }
  // Some sessions are open already, so each is met when it is taken from the pool, not when it connects.
  pool.on('acquire', onAcquire)
  pool.on('release', onRelease)
  return () => {
    pool.off('acquire', onAcquire)
    pool.off('release', onRelease)
  }
}
