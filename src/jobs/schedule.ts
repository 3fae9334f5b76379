import { setTimeout as sleep } from 'node:timers/promises'
import { PieceTooLong } from '../database/pieces.ts'
import { limits } from '../shared/limits.ts'
import type { Log } from '../telemetry/log.ts'

/** A job that runs again and again. The database stores the work to do, so a missed run loses nothing. */
export interface Job {
  name: string
  everyMs: number
  /** @returns true where more work is due at once */
  run(): Promise<boolean>
}

export interface Schedule {
  /** Runs a job now, or once more right after its present run. */
  notify(name: string): void
  /** False while a run of a job lasts longer than its `everyMs` plus `stuckMs`. */
  healthy(): boolean
  /** Begins no further run; resolves when the running ones have ended, or after `limits.drainOperatorsMs`. */
  close(): Promise<void>
}

/**
 * Starts every job: at once, then `everyMs` after each run, or at once if more work is due. Runs of one job
 * never overlap, and no job waits for another.
 */
export function startJobs(jobs: readonly Job[], log: Log): Schedule {
  const loops = new Map(jobs.map((job) => [job.name, startLoop(job, log)]))
  return {
    notify: (name) => loops.get(name)?.notify(),
    healthy: () => [...loops.values()].every((loop) => loop.healthy()),
    async close() {
      await Promise.all([...loops.values()].map((loop) => loop.close()))
    },
  }
}

/** A run that lasts longer than `everyMs` plus this time is stuck. */
const stuckMs = 60_000

function startLoop(job: Job, log: Log) {
  let closed = false
  let running: Promise<void> | null = null
  let again = false
  let begun = 0
  let timer: NodeJS.Timeout | undefined

  async function run(): Promise<void> {
    do {
      again = false
      begun = performance.now()
      try {
        const more = await job.run()
        // A `notify` during the run counts too, so read `again` only after the run.
        again ||= more
      } catch (error) {
        const isSmaller = error instanceof PieceTooLong
        if (isSmaller) log.warn({ err: error, job: job.name }, 'a job took too long; a smaller piece follows')
        else log.error({ err: error, job: job.name }, 'a job failed; it will run again')
        again ||= isSmaller
      }
    } while (again && !closed)
  }

  function notify(): void {
    if (closed) return
    if (running) {
      again = true
      return
    }
    clearTimeout(timer)
    running = run().finally(() => {
      running = null
      if (!closed) timer = setTimeout(notify, again ? 0 : job.everyMs).unref()
    })
  }

  notify()
  return {
    notify,
    healthy: () => running === null || performance.now() - begun < job.everyMs + stuckMs,
    async close() {
      closed = true
      clearTimeout(timer)
      // A run that lasts longer is cut off: the database stores all work that must not be lost.
      await Promise.race([running, sleep(limits.drainOperatorsMs, undefined, { ref: false })])
    },
  }
}
