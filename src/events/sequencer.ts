import { openPieces, PieceTooLong } from '../database/pieces.ts'
import { sqlFunction } from '../database/sql-function.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import type { Log } from '../telemetry/log.ts'
import { limits } from '../shared/limits.ts'

/** The shortest pause between two runs. Choice: clients do not notice 20 ms, and every run costs a commit. */
const eventPaceMs = 20

/** Gives committed events their positions soon after the commit. */
export interface Sequencer {
  /** Says that an event was committed. Cheap: calls that come together share one run. */
  notify(): void
  close(): Promise<void>
}

/** The most events that one run numbers. */
const eventsMax = 1_000

const sequenceEvents = sqlFunction('sequence_events', { takes: { take: 'int' }, gives: 'int' })

/**
 * Starts a sequencer. It numbers events after each `notify`, and every `limits.eventPollMs`, because a
 * process that died may have left events without numbers. Every process may start a sequencer: a lock in the
 * database lets one number events at a time.
 */
export function startSequencer(pool: Pool, log: Log): Sequencer {
  let running: Promise<void> | null = null
  let again = false
  let closed = false
  let begun = -Infinity
  const runPiece = openPieces({ max: eventsMax })

  async function run(): Promise<void> {
    do {
      // The first event is numbered at once; all events of the next 20 ms share one run and its commit.
      const early = begun + eventPaceMs - performance.now()
      if (early > 0 && !closed) await sleep(early)
      again = false
      begun = performance.now()
      try {
        again ||= await runPiece(async (take) => (await sequenceEvents(pool, { take })) === take)
      } catch (error) {
        log.warn({ err: error }, 'events could not be numbered; trying again')
        // A smaller piece follows at once.
        if (!(error instanceof PieceTooLong)) return
        again = true
      }
    } while (again && !closed)
  }

  function notify(): void {
    again = true
    running ??= run().finally(() => {
      running = null
      if (again && !closed) setTimeout(notify, retryMs).unref()
    })
  }

  const poll = setInterval(notify, limits.eventPollMs).unref()
  return {
    notify: () => {
      if (!closed) notify()
    },
    async close() {
      closed = true
      clearInterval(poll)
      await running
    },
  }
}

const retryMs = 200
