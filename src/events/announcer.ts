import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
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
  /** Says that an event of this merchant was committed. Cheap: calls that come together share one run. */
  announce(merchantId: number): void
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
 * Starts an announcer. Each process announces its own events. At its start, and then every
 * `announcerBounds.pollMs`, it also makes the deliveries of events that were not announced, because their
 * process died.
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

  poll()
  const timer = setInterval(poll, announcerBounds.pollMs).unref()
  return {
    announce(merchantId) {
      if (closed) return
      waiting.add(merchantId)
      start()
    },
    async close() {
      closed = true
      clearInterval(timer)
      await running
    },
  }
}

const retryMs = 200
