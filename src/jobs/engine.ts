import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LogFunctionFactory, Runner, TaskList, WorkerEvents, WorkerPool } from 'graphile-worker'
import pg from 'pg'
import { openPool } from '../database/client.ts'
import { limits } from '../shared/limits.ts'
import type { Log } from '../telemetry/log.ts'
import type { Tasks } from './catalogue.ts'
import { showAlive } from './liveness.ts'

/** Behind the notification that wakes it. */
const pollMs = 1_000
/** Choice: loading the library takes 90 ms of the processor, and the first requests need none of it. */
const beginAfterMs = 200
const restartMs = { first: 200, max: 5_000 }
/** What does not end by then is left to itself. */
const endMaxMs = 2_000

export interface JobEngine {
  /** False while it has stopped by itself and is not up again. */
  healthy(): boolean
  /** No further job begins; resolves when those under way have ended, within `limits.drainMs`. */
  close(): Promise<void>
}

export interface EngineOptions {
  connection: pg.ClientConfig
  role: string
  /** The jobs that it runs; others are left to other engines. */
  tasks: Partial<Tasks>
  jobsAtOnce: number
  /** One session listens, one shows that the engine lives; the others are opened when they are needed. */
  sessionsMax: number
  log: Log
}

/**
 * Runs jobs (graphile-worker): what transactions enqueued, on whichever node takes it first. Begins a moment
 * later; where it stops by itself, after the loss of its connections for instance, it is started again.
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
 * Runs until it is told to end, or ends by itself. Its sessions are its own: what it holds where it never
 * comes to its end is missing from no other run.
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
      .catch((error: unknown) => log.warn({ err: error }, 'sessions of jobs not closed'))
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
  // By itself: the end of a job could not be noted, for instance.
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
          pollInterval: pollMs,
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
    // One that broke may wait long for its own end; jobs of its that run on do nothing twice.
    const gone = new Promise((resolve) => broken.signal.addEventListener('abort', resolve, { once: true }))
    await Promise.race([runner.promise, gone.then(() => sleep(endMaxMs, undefined, { ref: false }))])
  } finally {
    const ended = Promise.all(alive.map((each) => each.close()))
    await Promise.race([ended, sleep(endMaxMs, undefined, { ref: false })])
  }
}

/** How the library begins to warn of fewer sessions than jobs. Meant so: jobs have their own. */
const fewSessions = 'WARNING: having maxPoolSize'

/**
 * What the library says of its work is for whoever looks for a fault; at the end it complains of the end.
 * @param onBroken it could not fetch: it keeps for good how its first look at its tables failed
 *   (`taskIdentifiers.js` of 0.18.0), so only a new one goes on for certain
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
 * The library gives the session on which it listens back twice where that breaks while it ends (`main.js` of
 * 0.18.0), and nobody waits for the second time: its refusal would end the process.
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
