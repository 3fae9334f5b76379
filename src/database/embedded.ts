import { closeSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { chooseAddress, type Postmaster, readPostmaster, signal } from './embedded-address.ts'
import { type Cluster, embeddedUser, openCluster } from './embedded-cluster.ts'
import { type Keepalive, openHold } from './embedded-keepalive.ts'

/** The database that `startEmbedded` makes, and that connections go to when no other is named. */
const mainDatabase = 'payments'

/** A crash of the machine leaves up to 1 GB of log to replay. */
const startTimeoutMs = 600_000
const stopTimeoutMs = 30_000
const attemptsMax = 5
const attemptPauseMs = 200
const pollMs = 5
const logBytesMax = 1_048_576

/** Where to start, and how. */
interface EmbeddedOptions {
  /** A folder for this server alone; made when missing. */
  dataDir: string
  /** `false` only in tests: a crash of the machine may then lose data. */
  durable: boolean
  /** Also listens on this port of 127.0.0.1; the password is in `dataDir/cluster/password`. */
  tcpPort?: number | undefined
  /** Called with one line for each thing that happens to the server. */
  log?: ((event: string) => void) | undefined
}

/** A PostgreSQL server that runs at least until `stop`. */
export interface EmbeddedServer {
  /** Returns the connection options for `pg`. @param database `payments` when left out */
  connection(database?: string): ReturnType<typeof connectionTo>
  /** Gives the server up. It stops now, in order, unless another process uses it too. */
  stop(): Promise<void>
}

/**
 * Starts the bundled PostgreSQL in `dataDir`, or joins the one that another process runs there, and makes the
 * database `payments` when it is missing. The server ends with the last process that uses it, also when that
 * one is killed; a server that ends by itself is started again.
 * @throws Error in one sentence when this machine or account cannot run it
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const { dataDir, durable, tcpPort, log = () => {} } = options
  const cluster = await openCluster(resolve(dataDir), durable)
  const keepalive = openHold(cluster, listSettings(cluster, durable, tcpPort))
  const location: Location = { cluster, keepalive, log }
  const server = await reach(location).catch((error: unknown) => {
    keepalive.release()
    throw error
  })
  let stopped: Promise<void> | undefined
  return {
    connection: (database = mainDatabase) => connectionTo(cluster, server, database),
    stop: () => (stopped ??= release(location)),
  }
}

interface Location {
  cluster: Cluster
  keepalive: Keepalive
  log: (event: string) => void
}

/** Joins the server of another process, or starts one. */
async function reach(location: Location): Promise<Postmaster> {
  const { cluster, keepalive, log } = location
  const begun = performance.now()
  let readLog: (() => string) | undefined
  let hasWaited = false
  let attempts = 0
  for (;;) {
    const server = readPostmaster(cluster.data)
    const isWatched = keepalive.isWatched()
    if (server?.ready && isWatched) {
      try {
        await assertAnswers(cluster, server)
      } catch (error) {
        // Another process may make the main database at the same moment.
        if (++attempts === attemptsMax) throw error
        await sleep(attemptPauseMs)
        continue
      }
      // The last hold may have ended just before ours began: such a server answers, but stops.
      if (!keepalive.isWatched()) continue
      const how = readLog ? `started in ${Math.round(performance.now() - begun)} ms` : 'joined'
      log(`PostgreSQL ${how} (pid ${server.pid})`)
      return server
    }
    if (!server && !isWatched) {
      if (readLog) throw new Error(`PostgreSQL did not start: ${readLog()}`)
      readLog = launch(location)
    }
    if (server && !isWatched) signal(server.pid, 'SIGINT')
    if (server && !readLog && !hasWaited) {
      hasWaited = true
      log(`PostgreSQL (pid ${server.pid}) is starting or stopping, waiting for that`)
    }
    if (performance.now() - begun > startTimeoutMs)
      throw new Error(`The PostgreSQL in ${cluster.dir} (pid ${server?.pid}) neither answers nor ends.`)
    await sleep(pollMs)
  }
}

/**
 * Starts PostgreSQL, and keeps what it logs.
 * @returns a function that reads what it has logged
 */
function launch({ cluster, keepalive, log }: Location): () => string {
  const path = join(cluster.dir, 'postgres.log')
  const sizeOf = () => statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (sizeOf() > logBytesMax) renameSync(path, `${path}.old`)
  const start = sizeOf()
  const logFile = openSync(path, 'a', 0o600)
  const child = keepalive.launch(logFile)
  closeSync(logFile)
  child.once('error', (error) => log(`PostgreSQL could not be run: ${error.message}`)).unref()
  return () => readFileSync(path).subarray(start).toString().trim()
}

/** Connects once, and makes the main database when it is missing. */
async function assertAnswers(cluster: Cluster, server: Postmaster): Promise<void> {
  const client = new pg.Client(connectionTo(cluster, server, 'postgres'))
  client.on('error', () => {})
  try {
    await client.connect()
    const found = await client.query('select from pg_database where datname = $1', [mainDatabase])
    if (found.rowCount === 0) await client.query(`create database ${mainDatabase}`)
  } finally {
    await client.end().catch(() => {})
  }
}

async function release({ cluster, keepalive, log }: Location): Promise<void> {
  const pid = readPostmaster(cluster.data)?.pid ?? 0
  if (keepalive.release()) return log('PostgreSQL left to the other processes that use it')
  const begun = performance.now()
  while (signal(pid, 0)) {
    if (performance.now() - begun > stopTimeoutMs) throw new Error(`PostgreSQL (pid ${pid}) does not stop.`)
    await sleep(pollMs)
  }
  log(`PostgreSQL stopped in ${Math.round(performance.now() - begun)} ms`)
}

function connectionTo({ password }: Cluster, { host, port }: Postmaster, database: string) {
  return { host, port, user: embeddedUser, password, database, ssl: false as const }
}

/** Sized for a machine of two cores. What the log may grow by is lifecycle lines and refused connections. */
function listSettings(cluster: Cluster, durable: boolean, tcpPort: number | undefined): string[] {
  const settings = {
    ...chooseAddress(cluster, tcpPort),
    max_connections: 300,
    shared_buffers: '128MB',
    work_mem: '8MB',
    maintenance_work_mem: '64MB',
    jit: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    // An error of a statement is the caller's to log; here it would also print the row's values.
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    log_checkpoints: 'off',
    ...(durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  }
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return ['-D', cluster.data, ...args]
}
