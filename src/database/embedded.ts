import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import {
  type Address,
  chooseAddress,
  isServing,
  type Postmaster,
  readPostmaster,
  removeStaleLock,
} from './embedded-address.ts'
import { type Cluster, embeddedUser, openCluster } from './embedded-cluster.ts'
import { type Hold, isHeld, joinHold, launch } from './embedded-hold.ts'

/** The database that `startEmbedded` makes, and that connections go to when no other is named. */
const mainDatabase = 'payments'

/** A crash of the machine leaves up to 1 GB of log to replay. */
const recoveryTimeoutMs = 600_000
/** How long to wait for a server of another process that is on its way up or down. */
const otherTimeoutMs = 60_000
/** How long a server may answer that nobody holds, before it counts as an orphan and is stopped. */
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
  const log = options.log ?? (() => {})
  const cluster = await openCluster(resolve(options.dataDir), options.durable)
  const place: Place = { cluster, address: await chooseAddress(cluster, options.tcpPort), options, log }
  let running = await acquire(place)
  let stopping = false
  let restart = Promise.resolve()

  const watch = () =>
    void running.ended.then(() => {
      if (stopping) return
      log(`PostgreSQL (pid ${running.pid}) ended by itself, starting it again`)
      running.hold.release()
      restart = acquire(place).then(
        (again) => {
          running = again
          watch()
        },
        (error) => log(`PostgreSQL could not be started again: ${String(error)}`),
      )
    })
  watch()

  const { socketDir, port } = running.address
  const connection = (database = mainDatabase) => connectionTo(cluster, running.address, database)
  const stop = async () => {
    if (stopping) return
    stopping = true
    await restart
    await release(place, running)
  }
  return { socketDir, port, user: embeddedUser, connection, stop }
}

interface Place {
  cluster: Cluster
  address: Address
  options: EmbeddedOptions
  log: (event: string) => void
}

interface Running {
  pid: number
  address: Address
  hold: Hold
  /** Settles when the server is gone. */
  ended: Promise<unknown>
}

/** Joins the server of another process, waits for one that is going down, or starts our own. */
async function acquire(place: Place): Promise<Running> {
  const begun = Date.now()
  let waiting = false
  for (let failures = 0; ; await sleep(pollMs)) {
    const server = readPostmaster(place.cluster)
    if (server) {
      const running = await joinServer(place, server, Date.now() - begun)
      if (running) return running
      if (!waiting) place.log(`PostgreSQL (pid ${server.pid}) is starting or stopping, waiting for that`)
      waiting = true
    } else {
      const running = await startServer(place).catch(async (error: unknown) => {
        // After a crash the last processes of the old server may take a moment to end.
        if (++failures === attemptsMax) throw error
        await sleep(attemptPauseMs)
      })
      if (running) return running
    }
    if (Date.now() - begun > otherTimeoutMs) {
      throw new Error(`The PostgreSQL in ${place.cluster.dir} (pid ${server?.pid}) neither answers nor ends.`)
    }
  }
}

async function joinServer(place: Place, server: Postmaster, waitedMs: number): Promise<Running | undefined> {
  if (!server.ready) return undefined
  const hold = joinHold(place.cluster)
  if (!hold) {
    if (waitedMs > orphanAfterMs) process.kill(server.pid, 'SIGINT')
    return undefined
  }
  // Its last holder may have gone just before we came: then it answers, but does not wait for us.
  if (!(await answers(place.cluster, server.address)) || !isHeld(place.cluster)) {
    hold.release()
    return undefined
  }
  place.log(`PostgreSQL joined (pid ${server.pid})`)
  return { pid: server.pid, address: server.address, hold, ended: gone(place.cluster, server.pid) }
}

/** The server of another process ends without a word. */
async function gone(cluster: Cluster, pid: number): Promise<void> {
  while (isServing(cluster, pid)) await sleep(gonePollMs, undefined, { ref: false })
}

/** @returns undefined when another process was first */
async function startServer(place: Place): Promise<Running | undefined> {
  const { cluster, address } = place
  const begun = performance.now()
  removeStaleLock(cluster)
  const logPath = join(cluster.dir, 'postgres.log')
  const logStart = rotate(logPath)
  const logFile = openSync(logPath, 'a', 0o600)
  const { pid, child, hold, publish } = launch(cluster, serverArgs(place), logFile)
  closeSync(logFile)
  const ended = new Promise((settle) => child.once('exit', settle).once('error', settle))
  const launched = await pid

  let server: Postmaster | undefined
  while (!(server?.pid === launched && server.ready)) {
    if (child.exitCode !== null || Number.isNaN(launched) || performance.now() - begun > recoveryTimeoutMs) {
      hold.release()
      if (server && server.pid !== launched) return undefined
      throw new Error(
        `PostgreSQL did not start: ${readFileSync(logPath).subarray(logStart).toString().trim()}`,
      )
    }
    await sleep(pollMs)
    server = readPostmaster(cluster)
  }
  publish()
  if (!(await answers(cluster, address))) throw new Error('PostgreSQL is ready but does not answer.')
  place.log(`PostgreSQL started in ${Math.round(performance.now() - begun)} ms (pid ${launched})`)
  return { pid: launched, address, hold, ended }
}

/** Connects once to the main database, and makes it when it is missing. */
async function answers(cluster: Cluster, address: Address): Promise<boolean> {
  const run = async (database: string, sql: string) => {
    const client = new pg.Client(connectionTo(cluster, address, database))
    client.on('error', () => {})
    try {
      await client.connect()
      await client.query(sql)
    } finally {
      await client.end().catch(() => {})
    }
  }
  try {
    await run(mainDatabase, 'select 1').catch(async (error) => {
      if (codeOf(error) !== '3D000') throw error
      await run('postgres', `create database ${mainDatabase}`)
    })
    return true
  } catch (error) {
    // On its way down, gone, or another process made the database at the same moment.
    if (['57P03', 'ECONNREFUSED', 'ECONNRESET', 'ENOENT', '42P04', '23505'].includes(codeOf(error)))
      return false
    throw error
  }
}

async function release(place: Place, running: Running): Promise<void> {
  if (running.hold.release()) {
    place.log('PostgreSQL left to the other processes that use it')
    return
  }
  const begun = performance.now()
  while (isServing(place.cluster, running.pid)) {
    if (performance.now() - begun > stopTimeoutMs)
      throw new Error(`PostgreSQL (pid ${running.pid}) does not stop.`)
    await sleep(pollMs)
  }
  place.log(`PostgreSQL stopped in ${Math.round(performance.now() - begun)} ms`)
}

function connectionTo(cluster: Cluster, address: Address, database: string): EmbeddedConnection {
  const { socketDir: host, port } = address
  return { host, port, user: embeddedUser, password: cluster.password, database, ssl: false }
}

/** Sized for a machine of two cores. What the log may grow by is lifecycle lines and refused connections. */
function serverArgs({ cluster, address, options }: Place): string[] {
  const settings: Record<string, string | number> = {
    ...address.settings,
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
    ...(options.durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  }
  return [
    '-D',
    cluster.data,
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]
}

/** Puts a large log aside. @returns the size of the log that is written on */
function rotate(path: string): number {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (size <= logBytesMax) return size
  rmSync(`${path}.old`, { force: true })
  renameSync(path, `${path}.old`)
  return 0
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
