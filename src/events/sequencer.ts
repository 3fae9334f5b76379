import { sqlFunction } from '../database/sql-function.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import type { Log } from '../telemetry/log.ts'
import { limits } from '../shared/limits.ts'

/** Events are numbered at most this often. Choice: nobody notices, and every run is a commit. */
const eventPaceMs = 20

/** Gives committed events their positions soon after the commit. */
export interface Sequencer {
  /** Something was committed: number it soon. Cheap; calls that come together share one run. */
  notify(): void
  close(): Promise<void>
}

const batchMax = 1_000

const sequenceEvents = sqlFunction('sequence_events', { takes: { take: 'int' }, gives: 'int' })

/**
 * Numbers events after each nudge, and once a poll interval for what another process left behind when it
 * died. Every process may run one: the database lets them take turns.
 */
export function startSequencer(pool: Pool, log: Log): Sequencer {
  let running: Promise<void> | null = null
  let again = false
  let closed = false
  let begun = -Infinity

  async function run(): Promise<void> {
    do {
      // A first event is numbered at once; of many, those of one pace share a run and its commit.
      const early = begun + eventPaceMs - performance.now()
      if (early > 0 && !closed) await sleep(early)
      again = false
      begun = performance.now()
      try {
        again ||= (await sequenceEvents(pool, { take: batchMax })) === batchMax
      } catch (error) {
        log.warn({ err: error }, 'events not numbered; trying again')
        return
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
