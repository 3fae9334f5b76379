import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LogFunctionFactory, Runner, TaskList, WorkerEvents, WorkerPool } from 'graphile-worker'
import pg from 'pg'
import { openPool } from '../database/client.ts'
import { limits } from '../shared/limits.ts'
import type { Log } from '../telemetry/log.ts'
import type { Tasks } from './catalogue.ts'
import { showAlive } from './liveness.ts'

/** The interval at which the engine looks for jobs, in case a notification was lost. Tests lengthen it. */
export const engineBounds = { pollMs: 1_000 }
/** The wait before the engine begins: its library loads for 90 ms, and the first requests go before. */
const beginAfterMs = 200
const restartMs = { first: 200, max: 5_000 }
/** The longest wait for the sessions and the liveness lock to end; after it they are abandoned. */
const endMaxMs = 2_000

export interface JobEngine {
  /** False from when the engine stopped by itself until it runs again. */
  healthy(): boolean
  /** Begins no further job; resolves when the running jobs have ended, or after `limits.drainMs`. */
  close(): Promise<void>
}

export interface EngineOptions {
  connection: pg.ClientConfig
  role: string
  /** The jobs that this engine runs. Other engines run the other jobs. */
  tasks: Partial<Tasks>
  jobsAtOnce: number
  /** The most sessions: one listens, and one shows that the engine is alive; the others open when needed. */
  sessionsMax: number
  log: Log
}

/**
 * Runs the jobs that transactions enqueued (graphile-worker), each on the first node that takes it. The
 * engine begins after `beginAfterMs`. If it stops by itself, for instance after the loss of its connections,
 * it starts again.
 */
export function startEngine(options: EngineOptions): JobEngine {
  const { log } = options
  const closing = new AbortController()
  let up = true
  const done = keepRunning()

  async function keepRunning(): Promise<void> {
    let pauseMs = restartMs.first
    await sleep(beginAfterMs, undefined, { signal: closing.signal }).catch(() => {})
    while (!closing.signal.aborted) {
      try {
        await runOnce(options, closing.signal, () => {
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
      await Promise.race([done, sleep(limits.drainMs, undefined, { ref: false })])
    },
  }
}

/**
 * Runs one engine until `closing` aborts or the engine ends by itself. Each run has a pool of its own, so
 * that the next run has all sessions even if this run never returns some.
 */
async function runOnce(options: EngineOptions, closing: AbortSignal, onUp: () => void): Promise<void> {
  const { connection, role, sessionsMax, log } = options
  const warn = (event: string) => log.warn(event)
  const pool = takeBackOnce(openPool(connection, sessionsMax, role, warn, pg.types))
  try {
    await runOn(pool, options, closing, onUp)
  } finally {
    const ended = pool
      .end()
      .catch((error: unknown) =>
        log.warn({ err: error }, 'the database sessions of the jobs could not be closed'),
      )
    await Promise.race([ended, sleep(endMaxMs, undefined, { ref: false })])
  }
}

async function runOn(
  pool: pg.Pool,
  { tasks, jobsAtOnce, sessionsMax, log }: EngineOptions,
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
  // The library stopped by itself, for instance because it could not record the end of a job.
  events.on('pool:gracefulShutdown', () => {
    if (!closing.aborted) broken.abort()
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
          pollInterval: engineBounds.pollMs,
          localQueue: { size: jobsAtOnce },
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
          logger: new Logger(openLogger(log, closing, () => broken.abort())),
        },
      },
    })
    onUp()
    const stop = () => void runner.stop().catch(() => {})
    const over = AbortSignal.any([closing, broken.signal])
    over.addEventListener('abort', stop, { once: true })
    if (over.aborted) stop()
    // A broken engine may take long to end. Another engine may run its jobs again: see `JobPayloads`.
    const gone = new Promise((resolve) => broken.signal.addEventListener('abort', resolve, { once: true }))
    await Promise.race([runner.promise, gone.then(() => sleep(endMaxMs, undefined, { ref: false }))])
  } finally {
    const ended = Promise.all(alive.map((each) => each.close()))
    await Promise.race([ended, sleep(endMaxMs, undefined, { ref: false })])
  }
}

/**
 * The beginning of the library's warning that it has fewer sessions than jobs. It needs no more: jobs use
 * other pools.
 */
const fewSessions = 'WARNING: having maxPoolSize'

/**
 * Makes the library's logger. The library's messages about its work are logged at level debug, for fault
 * finding; while the service ends, all messages are.
 * @param onBroken called when the library could not fetch jobs. If the library's first read of its tables
 * fails, the library never reads them again (`taskIdentifiers.js` of 0.18.0), so only a new engine works for
 * certain
 */
function openLogger(log: Log, closing: AbortSignal, onBroken: () => void): LogFunctionFactory {
  return () => (level, message, meta) => {
    if (message.startsWith('Error occurred fetching jobs')) onBroken()
    const loud =
      !closing.aborted && !message.startsWith(fewSessions) && (level === 'error' || level === 'warning')
    log[loud ? (level === 'error' ? 'error' : 'warn') : 'debug']({ err: meta?.['error'] }, message)
  }
}

/**
 * Makes a pool that ignores the second release of a session. The library releases its listening session twice
 * if that session breaks while the engine ends (`main.js` of 0.18.0). The pool throws on the second release
 * and no code catches the error, so the process would end.
 */
function takeBackOnce(pool: pg.Pool): pg.Pool {
  const connect = pool.connect.bind(pool)
  type Taken = Parameters<typeof connect>[0]
  const connectOnce = (taken?: Taken) => {
    if (!taken) return connect()
    return connect((error, client, done) => {
      let isOut = client !== undefined
      taken(error, client, (broken) => {
        if (isOut) done(broken)
        isOut = false
      })
    })
  }
  return Object.assign(pool, { connect: connectOnce })
}
