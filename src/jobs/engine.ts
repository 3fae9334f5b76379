import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LogFunctionFactory, Runner, TaskList, WorkerEvents, WorkerPool } from 'graphile-worker'
import pg from 'pg'
import { openPool } from '../database/client.ts'
import { limits } from '../shared/limits.ts'
import type { Log } from '../telemetry/log.ts'
import type { Tasks } from './catalogue.ts'
import { showAlive } from './liveness.ts'

/** One job of each operator, and as many that only wake them. */
const jobsAtOnce = 8
/** One session listens, one shows that the engine lives; the others are opened when they are needed. */
const sessionsMax = 8
/** Behind the notification that wakes it. */
const pollMs = 1_000
/** Choice: loading the library takes 90 ms of the processor, and the first requests need none of it. */
const beginAfterMs = 200
const restartMs = { first: 200, max: 5_000 }

export interface Engine {
  /** False while it has stopped by itself and is not up again. */
  healthy(): boolean
  /** No further job begins; resolves when those under way have ended, within `limits.drainMs`. */
  close(): Promise<void>
}

export interface EngineOptions {
  connection: pg.ClientConfig
  role: string
  tasks: Tasks
  log: Log
}

/**
 * Runs jobs (graphile-worker): what transactions enqueued, on whichever node takes it first. Begins a moment
 * later; where it stops by itself, after the loss of its connections for instance, it is started again.
 */
export function startEngine({ connection, role, tasks, log }: EngineOptions): Engine {
  const closing = new AbortController()
  const pool = openPool(connection, sessionsMax, role, (event, err) => log.warn({ err }, event), pg.types)
  let up = true
  const done = keepRunning()

  async function keepRunning(): Promise<void> {
    let pauseMs = restartMs.first
    await sleep(beginAfterMs, undefined, { signal: closing.signal }).catch(() => {})
    while (!closing.signal.aborted) {
      try {
        await runOnce(pool, tasks, log, closing.signal, () => {
          up = true
          pauseMs = restartMs.first
        })
      } catch (error) {
        log.error({ err: error }, 'the job engine failed')
      }
      if (closing.signal.aborted) break
      up = false
      log.warn('the job engine stopped; it starts again')
      await sleep(pauseMs, undefined, { signal: closing.signal }).catch(() => {})
      pauseMs = Math.min(pauseMs * 2, restartMs.max)
    }
  }

  return {
    healthy: () => up,
    async close() {
      closing.abort()
      const ended = done.then(() => pool.end())
      await Promise.race([ended, sleep(limits.drainMs, undefined, { ref: false })])
    },
  }
}

/** Runs until it is told to end, or ends by itself. */
async function runOnce(
  pool: pg.Pool,
  tasks: Tasks,
  log: Log,
  closing: AbortSignal,
  onUp: () => void,
): Promise<void> {
  const { run, Logger } = await import('graphile-worker')
  const events: WorkerEvents = new EventEmitter()
  const alive: { close(): Promise<void> }[] = []
  const broken = new AbortController()
  events.on('pool:create', ({ workerPool }: { workerPool: WorkerPool }) => {
    alive.push(showAlive(pool, workerPool.id, log))
  })
  try {
    const runner: Runner = await run({
      pgPool: pool,
      noHandleSignals: true,
      parsedCronItems: [],
      taskList: tasks as unknown as TaskList,
      events,
      preset: {
        worker: {
          schema: 'graphile_worker',
          concurrentJobs: jobsAtOnce,
          maxPoolSize: sessionsMax,
          pollInterval: pollMs,
          localQueue: { size: jobsAtOnce },
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
          logger: new Logger(tellLog(log, closing, () => broken.abort())),
        },
      },
    })
    onUp()
    const stop = () => void runner.stop().catch(() => {})
    const over = AbortSignal.any([closing, broken.signal])
    over.addEventListener('abort', stop, { once: true })
    if (over.aborted) stop()
    await runner.promise
  } finally {
    await Promise.all(alive.map((each) => each.close()))
  }
}

/**
 * What the library says of its work is for whoever looks for a fault; at the end it complains of the end.
 * @param onBroken it could not fetch: it keeps for good how its first look at its tables failed
 *   (`taskIdentifiers.js` of 0.18.0), so only a new one goes on for certain
 */
function tellLog(log: Log, closing: AbortSignal, onBroken: () => void): LogFunctionFactory {
  return () => (level, message, meta) => {
    if (message.startsWith('Error occurred fetching jobs')) onBroken()
    const loud = !closing.aborted && (level === 'error' || level === 'warning')
    log[loud ? (level === 'error' ? 'error' : 'warn') : 'debug']({ err: meta?.['error'] }, message)
  }
}
