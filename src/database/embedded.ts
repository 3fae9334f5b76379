import { createHash } from 'node:crypto'
import { closeSync, lstatSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type Cluster, embeddedUser, openCluster, runSync } from './embedded-cluster.ts'
import { type Keepalive, openHold, type Postmaster, readPostmaster, signal } from './embedded-keepalive.ts'

/** The database that `startEmbedded` makes, and that connections go to when no other is named. */
const mainDatabase = 'payments'

/** The longest start: after a crash of the machine, PostgreSQL may replay 1 GB of its write-ahead log. */
const startTimeoutMs = 600_000
const stopTimeoutMs = 30_000
/** How long a server that is ready may fail to answer: on a busy machine it refuses sessions for a while. */
const answerTimeoutMs = 30_000
const pollMs = 5
const logBytesMax = 1_048_576
/** Every system allows 103 bytes for a socket's path: `/.s.PGSQL.65535` takes 15 of them, 3 are spare. */
const socketDirBytesMax = 85

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
  /** Ends this process's use of the server. The server stops in order, unless another process uses it too. */
  stop(): Promise<void>
}

type Log = (event: string) => void

/**
 * Starts the bundled PostgreSQL in `dataDir`, or joins the one that another process runs there, and makes the
 * database `payments` when it is missing. The server ends with the last process that uses it, also when that
 * process is killed; a server that ends by itself is started again. On Windows, the server ends with the
 * process that started it, and is not started again.
 * @throws Error in one sentence when this machine or account cannot run it
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const { dataDir, durable, tcpPort, log = () => {} } = options
  const cluster = await openCluster(resolve(dataDir), durable)
  const keepalive = openHold(cluster, listSettings(cluster, durable, tcpPort))
  const server = await reach(cluster, keepalive, log).catch((error: unknown) => {
    keepalive.release()
    throw error
  })
  let stopped: Promise<void> | undefined
  return {
    connection: (database = mainDatabase) => connectionTo(cluster, server, database),
    stop: () => (stopped ??= release(cluster, keepalive, log)),
  }
}

/** Joins the server of another process, or starts one. */
async function reach(cluster: Cluster, keepalive: Keepalive, log: Log): Promise<Postmaster> {
  const begun = performance.now()
  const found = readPostmaster(cluster.data)
  if (found && !(found.ready && keepalive.isWatched()))
    log(`PostgreSQL (pid ${found.pid}) is starting or stopping, waiting for that`)
  const logPath = join(cluster.dir, 'postgres.log')
  let launched = false
  for (let readySince = 0; ; await sleep(pollMs)) {
    const server = readPostmaster(cluster.data)
    const isWatched = keepalive.isWatched()
    const now = performance.now()
    if (now - begun > startTimeoutMs)
      throw new Error(`The PostgreSQL in ${cluster.dir} (pid ${server?.pid}) neither answers nor ends.`)
    if (server && !isWatched) signal(server.pid, 'SIGINT')
    if (!server && !isWatched) {
      if (launched) throw new Error(`PostgreSQL did not start: ${readEnd(logPath)}`)
      launch(keepalive, logPath, log)
      launched = true
    }
    if (!server?.ready || !isWatched) {
      readySince = 0
      continue
    }
    readySince ||= now
    const error: unknown = await assertAnswers(cluster, server).catch((thrown: unknown) => thrown)
    // Another process may have made the main database at the same moment.
    if (error && now - readySince > answerTimeoutMs) throw error
    // The last user may have ended just before this process joined: such a server answers, but stops.
    if (error || !keepalive.isWatched()) continue
    const how = launched ? `started in ${Math.round(performance.now() - begun)} ms` : 'joined'
    log(`PostgreSQL ${how} (pid ${server.pid})`)
    return server
  }
}

/** Starts PostgreSQL, which appends to its log; a log that is too long is renamed first. */
function launch(keepalive: Keepalive, logPath: string, log: Log): void {
  const size = statSync(logPath, { throwIfNoEntry: false })?.size ?? 0
  if (size > logBytesMax) renameSync(logPath, `${logPath}.old`)
  const logFile = openSync(logPath, 'a', 0o600)
  const child = keepalive.launch(logFile)
  closeSync(logFile)
  child.once('error', (error) => log(`PostgreSQL could not be run: ${error.message}`)).unref()
}

/** Returns the last lines of the log, in which a server says why it did not start. */
function readEnd(logPath: string): string {
  return readFileSync(logPath, 'utf8').trimEnd().split('\n').slice(-10).join('\n')
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

async function release(cluster: Cluster, keepalive: Keepalive, log: Log): Promise<void> {
  const pid = readPostmaster(cluster.data)?.pid ?? 0
  if (keepalive.release()) return log('PostgreSQL left to the other processes that use it')
  const begun = performance.now()
  while (signal(pid, 0)) {
    if (performance.now() - begun > stopTimeoutMs) throw new Error(`PostgreSQL (pid ${pid}) does not stop.`)
    await sleep(pollMs)
  }
  log(`PostgreSQL stopped in ${Math.round(performance.now() - begun)} ms`)
}

function connectionTo({ data }: Cluster, { host, port }: Postmaster, database: string) {
  const password = readFileSync(join(data, 'password'), 'utf8')
  return { host, port, user: embeddedUser, password, database, ssl: false as const }
}

/** For tests: nothing waits for the disk, and no vacuum works beside them and changes their plans. */
const quickSettings = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', autovacuum: 'off' }

/** Returns the settings for a machine of two cores. The log gets only starts, stops and refused sessions. */
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
    // The service logs errors of statements; the server's log would also print values of rows.
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    log_checkpoints: 'off',
    ...(durable ? {} : quickSettings),
  }
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return ['-D', cluster.data, ...args]
}

/**
 * Returns the settings that say where the server listens: on a socket in the cluster's folder, which only its
 * owner may enter, and on `tcpPort`, if given. On Windows it listens on 127.0.0.1 only: on `tcpPort`, or
 * on a port derived from the folder's path.
 */
function chooseAddress(cluster: Cluster, tcpPort: number | undefined) {
  const hash = createHash('sha256').update(cluster.dir).digest()
  if (process.platform === 'win32')
    return { listen_addresses: '127.0.0.1', port: tcpPort ?? 20_000 + (hash.readUInt16BE() % 10_000) }
  const isShort = Buffer.byteLength(cluster.dir) <= socketDirBytesMax
  const socketDir = isShort ? cluster.dir : makeShortDir(cluster, hash.toString('hex', 0, 8))
  return {
    listen_addresses: tcpPort === undefined ? '' : '127.0.0.1',
    port: tcpPort ?? 5432,
    // PostgreSQL splits this list at commas outside of double quotes.
    unix_socket_directories: `"${socketDir.replaceAll('"', '""')}"`,
  }
}

/** Makes a folder with a short name for a cluster whose own path is too long for the path of a socket. */
function makeShortDir(cluster: Cluster, name: string): string {
  const path = join(tmpdir(), `merchant-payments-${name}`)
  runSync(cluster, 'mkdir', ['-p', '-m', '700', path])
  const found = lstatSync(path)
  if (!found.isDirectory() || found.uid !== statSync(cluster.dir).uid || (found.mode & 0o077) !== 0)
    throw new Error(`${path} belongs to another account, or is open to others: remove it.`)
  return path
}
