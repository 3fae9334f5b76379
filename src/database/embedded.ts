import { closeSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import {
  chooseAddress,
  isServing,
  type Postmaster,
  readPostmaster,
  removeStaleLock,
} from './embedded-address.ts'
import { type Cluster, embeddedUser, openCluster } from './embedded-cluster.ts'
import { type Keepalive, openHold } from './embedded-keepalive.ts'

/** The database that `startEmbedded` makes, and that connections go to when no other is named. */
const mainDatabase = 'payments'

/** A crash of the machine leaves up to 1 GB of log to replay. */
const startTimeoutMs = 600_000
/** How long a server may run that nobody holds, before it counts as an orphan and is stopped. */
const orphanAfterMs = 3_000
const stopTimeoutMs = 30_000
const attemptsMax = 5
const attemptPauseMs = 200
const pollMs = 5
const gonePollMs = 100
const logBytesMax = 1_048_576

/** Where to start, and how. */
export interface EmbeddedOptions {
  /** A folder for this server alone; made when missing. */
  dataDir: string
  /** `false` only in tests: a crash of the machine may then lose data. */
  durable: boolean
  /**
   * Also listens on this port of 127.0.0.1, for graphical tools; the password is in
   * `dataDir/cluster/password`.
   */
  tcpPort?: number | undefined
  /** Called with one line for each thing that happens to the server. */
  log?: ((event: string) => void) | undefined
}

/** What `pg` needs in order to connect. */
export interface EmbeddedConnection {
  host: string
  port: number
  user: string
  password: string
  database: string
  ssl: false
}

/** A PostgreSQL server that runs at least until `stop`. */
export interface EmbeddedServer {
  /** The folder of its Unix socket; `127.0.0.1` on Windows. */
  readonly socketDir: string
  readonly port: number
  readonly user: string
  /** @param database `payments` when left out */
  connection(database?: string): EmbeddedConnection
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
  const serverArgs = listSettings(cluster, durable, await chooseAddress(cluster.dir, tcpPort))
  const location: Location = { cluster, serverArgs, keepalive: openHold(cluster), log }
  let server = await reach(location).catch((error: unknown) => {
    location.keepalive.release()
    throw error
  })
  let stopping = false
  let restart = Promise.resolve()
  const watch = async () => {
    for (;;) {
      while (isServing(cluster.data, server.pid)) await sleep(gonePollMs, undefined, { ref: false })
      if (stopping) return
      log(`PostgreSQL (pid ${server.pid}) ended by itself, starting it again`)
      restart = reach(location).then((again) => void (server = again))
      await restart
    }
  }
  watch().catch((error: unknown) => log(`PostgreSQL could not be started again: ${String(error)}`))

  const connection = (database = mainDatabase) => connectionTo(cluster, server, database)
  const stop = async () => {
    if (stopping) return
    stopping = true
    await restart.catch(() => {})
    await release(location, server.pid)
  }
  return { socketDir: server.host, port: server.port, user: embeddedUser, connection, stop }
}

interface Location {
  cluster: Cluster
  /** The command line of a server that this process starts. */
  serverArgs: string[]
  keepalive: Keepalive
  log: (event: string) => void
}

/** Joins the server of another process, waits for one that is going down, or starts one. */
async function reach(location: Location): Promise<Postmaster> {
  const { cluster, keepalive, log } = location
  const begun = performance.now()
  let launched: Launched | undefined
  let isWaiting = false
  for (let failures = 0; ; await sleep(pollMs)) {
    const waitedMs = Math.round(performance.now() - begun)
    const server = readPostmaster(cluster.data)
    const isOurs = launched?.isRunning() ?? false
    if (waitedMs > startTimeoutMs)
      throw new Error(`The PostgreSQL in ${cluster.dir} (pid ${server?.pid}) neither answers nor ends.`)
    try {
      // The last hold may have ended just before ours began: such a server answers, but stops.
      if (
        server?.ready &&
        keepalive.isWatched() &&
        (await answers(cluster, server)) &&
        keepalive.isWatched()
      ) {
        log(`PostgreSQL ${isOurs ? `started in ${waitedMs} ms` : 'joined'} (pid ${server.pid})`)
        return server
      }
      if (server && !isOurs) {
        if (!isWaiting) log(`PostgreSQL (pid ${server.pid}) is starting or stopping, waiting for that`)
        isWaiting = true
        if (server.ready && waitedMs > orphanAfterMs && !keepalive.isWatched())
          process.kill(server.pid, 'SIGINT')
      }
      if (!server && launched && !isOurs) {
        const words = launched.words()
        launched = undefined
        throw new Error(`PostgreSQL did not start: ${words}`)
      }
      if (!server) launched ??= launch(location)
    } catch (error) {
      // After a crash the last processes of the old server may take a moment to end.
      if (++failures === attemptsMax) throw error
      await sleep(attemptPauseMs)
    }
  }
}

interface Launched {
  isRunning(): boolean
  /** What it has logged. */
  words(): string
}

function launch({ cluster, serverArgs, keepalive }: Location): Launched {
  removeStaleLock(cluster.data)
  const path = join(cluster.dir, 'postgres.log')
  const sizeOf = () => statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (sizeOf() > logBytesMax) renameSync(path, `${path}.old`)
  const start = sizeOf()
  const logFile = openSync(path, 'a', 0o600)
  const child = keepalive.launch(serverArgs, logFile)
  closeSync(logFile)
  let problem = ''
  child.once('error', (error) => (problem = error.message)).unref()
  return {
    isRunning: () => child.pid !== undefined && child.exitCode === null && child.signalCode === null,
    words: () => problem || readFileSync(path).subarray(start).toString().trim(),
  }
}

/** Connects once to the main database, and makes it when it is missing. */
async function answers(cluster: Cluster, server: Postmaster): Promise<true> {
  const run = async (database: string, sql: string) => {
    const client = new pg.Client(connectionTo(cluster, server, database))
    client.on('error', () => {})
    try {
      await client.connect()
      await client.query(sql)
    } finally {
      await client.end().catch(() => {})
    }
  }
  await run(mainDatabase, 'select 1').catch(async (error: unknown) => {
    if (!(error instanceof pg.DatabaseError && error.code === '3D000')) throw error
    await run('postgres', `create database ${mainDatabase}`)
  })
  return true
}

async function release({ cluster, keepalive, log }: Location, pid: number): Promise<void> {
  if (keepalive.release()) return log('PostgreSQL left to the other processes that use it')
  const begun = performance.now()
  while (isServing(cluster.data, pid)) {
    if (performance.now() - begun > stopTimeoutMs) throw new Error(`PostgreSQL (pid ${pid}) does not stop.`)
    await sleep(pollMs)
  }
  log(`PostgreSQL stopped in ${Math.round(performance.now() - begun)} ms`)
}

function connectionTo(
  { password }: Cluster,
  { host, port }: Postmaster,
  database: string,
): EmbeddedConnection {
  return { host, port, user: embeddedUser, password, database, ssl: false }
}

/** Sized for a machine of two cores. What the log may grow by is lifecycle lines and refused connections. */
function listSettings({ data }: Cluster, durable: boolean, address: object): string[] {
  const settings = {
    ...address,
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
  return ['-D', data, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
}
