import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import { PrismaClient } from '../../prisma/generated/prisma/client.ts'
import { waits } from '../shared/waits.ts'
import { type FlatReads, flatReads } from './flat-read.ts'
import { MerchantPool, merchantRole } from './merchant-pool.ts'
import { bigintTypes } from './sql-function.ts'
import { verifyRole, verifyTenantRls } from './verify-session.ts'

const idleTimeoutMs = 60_000
/**
 * The most distinct texts of Prisma's statements that are prepared; others run unprepared, so that sessions
 * do not fill up with prepared statements.
 */
const preparedMax = 500
/** Connections that a pool loses within this time are reported in one line. */
const gatherMs = 100
const reconnectMs = { first: 50, max: 5_000 }

/** Receives one line for each event of the connections. */
export type DatabaseLog = (event: string) => void

/**
 * The ways into the database. A merchant's own data is read through the last two, bound to the merchant by
 * `asMerchant`. `pool` is for work across merchants (signing in, payers, callbacks, jobs, money); request
 * handlers get it from `asPlatform` (`as-platform.ts`), with the reason.
 * In the pools `int8` arrives as bigint, `timestamptz` as Date. The sum of bigints is `numeric` and arrives
 * as text: cast it.
 */
export interface Database {
  /** A pool that sees every merchant's rows. */
  readonly pool: pg.Pool
  /** A pool that sees only the rows of the merchant on whose behalf the code runs. */
  readonly merchantPool: pg.Pool
  /** Prisma, through `merchantPool`. */
  readonly prisma: PrismaClient
  close(): Promise<void>
}

/**
 * Opens the database. It connects lazily: an unreachable server shows in the first statement.
 * @param options.poolMax connections of `pool`
 * @param options.merchantPoolMax connections of `merchantPool`; by default the same number
 * @param options.role the role of every session of `pool` from its first moment; sessions of `merchantPool`
 * then have `payments_merchant`. Null: both pools have the account's own rights, which see no merchant unless
 * the account is a superuser
 */
export function openDatabase(options: {
  connection: pg.ClientConfig | string
  poolMax: number
  merchantPoolMax?: number
  role: string | null
  log: DatabaseLog
  /** Checks each new session of `pool` before it is used; a session that it refuses is closed. */
  checkSession?: CheckSession
}): Database {
  const { connection, poolMax, merchantPoolMax = poolMax, role, log, checkSession } = options
  const pool = watchPool(new pg.Pool(poolConfig(connection, poolMax, role, checkSession)), log)
  const merchantPool = watchPool(
    new MerchantPool(poolConfig(connection, merchantPoolMax, role === null ? null : merchantRole)),
    log,
  )
  const adapter = new PrismaPg(merchantPool, { statementNameGenerator: statementNames() })
  const prisma = flatFirst(oneByOne(new PrismaClient({ adapter })), flatReads(merchantPool))
  let closed: Promise<void> | undefined
  const close = async () => {
    await prisma.$disconnect()
    await Promise.all([pool.end(), merchantPool.end()])
  }
  return { pool, merchantPool, prisma, close: () => (closed ??= close()) }
}

/** Runs one small statement on a session of each pool that requests use. */
export async function probePools({ pool, merchantPool }: Database): Promise<void> {
  await Promise.all([pool.query('SELECT'), merchantPool.query('SELECT')])
}

/**
 * Makes Prisma run each lookup by a unique key at once. By default Prisma collects such lookups until the end
 * of the tick, and runs them on behalf of the first caller's merchant: other merchants would get no row. A
 * lookup as `findFirst` runs at once, on behalf of its own caller.
 */
function oneByOne(client: PrismaClient): PrismaClient {
  const find = (model: string, verb: 'findFirst' | 'findFirstOrThrow', args: { where?: object }) => {
    const name = `${model.charAt(0).toLowerCase()}${model.slice(1)}`
    const delegate = client[name as 'merchant'] as unknown as Record<typeof verb, (args: object) => unknown>
    return delegate[verb]({ ...args, where: spreadKeys(args.where ?? {}) })
  }
  const query = {
    findUnique: async ({ model, args }: { model: string; args: object }) => find(model, 'findFirst', args),
    findUniqueOrThrow: async ({ model, args }: { model: string; args: object }) =>
      find(model, 'findFirstOrThrow', args),
  }
  return client.$extends({ query: { $allModels: query } }) as unknown as PrismaClient
}

/** Makes Prisma leave flat queries to a statement of their own: see `flat-read.ts`. */
function flatFirst(client: PrismaClient, flat: FlatReads): PrismaClient {
  type Hook = { model: string; args: object; query: (args: object) => Promise<unknown> }
  const query = {
    findMany: async ({ model, args, query: general }: Hook) => flat.findMany(model, args) ?? general(args),
    count: async ({ model, args, query: general }: Hook) => flat.count(model, args) ?? general(args),
  }
  return client.$extends({ query: { $allModels: query } }) as unknown as PrismaClient
}

/**
 * Splits compound keys: only their names have an underscore (`merchantId_id`), and a filter names each
 * column.
 */
function spreadKeys(where: object): object {
  const parts = Object.entries(where).map(([name, value]) => (name.includes('_') ? value : { [name]: value }))
  return Object.assign({}, ...parts)
}

/**
 * Opens one pool like `pool` of `openDatabase`.
 * @param types type parsers for a library that does not expect `int8` as bigint
 */
export function openPool(
  connection: pg.ClientConfig | string,
  max: number,
  role: string | null,
  log: DatabaseLog,
  types: pg.CustomTypesConfig = bigintTypes(),
): pg.Pool {
  return watchPool(new pg.Pool({ ...poolConfig(connection, max, role), types }), log)
}

type CheckSession = (client: pg.ClientBase) => Promise<void>

function poolConfig(
  connection: pg.ClientConfig | string,
  max: number,
  role: string | null,
  checkSession?: CheckSession,
): pg.PoolConfig {
  // Prisma reads and writes times without their offset, so its sessions must be in UTC. A plan that was made
  // for a small table is kept while the table grows, so plans avoid reading whole tables (enable_seqscan).
  // Compiling a plan (jit) can take seconds where an estimate is far too high, and gains nothing here.
  // Starting parallel workers takes 50 ms, longer than the statements of a page take.
  const startup = [
    '-c TimeZone=UTC',
    '-c enable_seqscan=off',
    '-c jit=off',
    '-c max_parallel_workers_per_gather=0',
    `-c role=${role ?? accountItself}`,
  ]
  return {
    application_name: 'merchant-payments',
    ...withStartupOptions(connection, startup),
    max,
    connectionTimeoutMillis: waits.connectMs,
    idleTimeoutMillis: idleTimeoutMs,
    statement_timeout: waits.statementMs,
    query_timeout: waits.answerMs,
    lock_timeout: waits.lockMs,
    idle_in_transaction_session_timeout: waits.idleInTransactionMs,
    keepAlive: true,
    types: bigintTypes(),
    verify: (client, done) => void verifySession(client, { role, checkSession, done }),
  }
}

/** Verifies a new session; if that fails, the pool closes the session and never uses it. */
async function verifySession(
  client: pg.ClientBase,
  options: {
    role: string | null
    checkSession: CheckSession | undefined
    done: (problem?: Error) => void
  },
): Promise<void> {
  const { role, checkSession, done } = options
  let problem: unknown
  try {
    if (role === merchantRole) await verifyTenantRls(client, role)
    else if (role !== null) await verifyRole(client, role)
    await checkSession?.(client)
  } catch (error) {
    problem = error
  }
  done(problem as Error | undefined)
}

/**
 * The rights of the account itself. They must be requested: by default each session of the account in this
 * database begins as the role that sees no merchant (`migrate`), also where the startup options are lost.
 */
const accountItself = 'none'

/** Returns a connection with sessions that act as a role; null: with the account's own rights. */
export function asRole(connection: pg.ClientConfig | string, role: string | null): pg.ClientConfig {
  return withStartupOptions(connection, [`-c role=${role ?? accountItself}`])
}

function watchPool(pool: pg.Pool, log: DatabaseLog): pg.Pool {
  let lost = 0
  // A server that stops closes all sessions at once: report them in one line.
  pool.on('error', (error) => {
    lost += 1
    if (lost > 1) return
    setTimeout(() => {
      if (!pool.ending) log(`database connections lost while idle: ${lost} (${error.message})`)
      lost = 0
    }, gatherMs).unref()
  })
  // A connection that breaks while it is in use emits an error too; without a listener the error would end
  // the process.
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

/**
 * Adds startup options to a connection. Options of a connection string are joined with them, because `pg`
 * would use only the options of the string.
 */
function withStartupOptions(connection: pg.ClientConfig | string, startup: string[]): pg.ClientConfig {
  const config = typeof connection === 'string' ? { connectionString: connection } : connection
  if (config.connectionString === undefined)
    return { ...config, options: [config.options, ...startup].join(' ') }
  const url = new URL(config.connectionString)
  const given = url.searchParams.get('options') ?? config.options
  url.searchParams.delete('options')
  return { ...config, connectionString: url.href, options: [given, ...startup].join(' ') }
}

/**
 * Returns a function that names statements: one name for one text, the same in every process, because
 * processes may share sessions behind a pooler. An empty name means that the statement is not prepared.
 */
function statementNames(): (query: { sql: string }) => string {
  const names = new Map<string, string>()
  return ({ sql }) => {
    const known = names.get(sql)
    if (known !== undefined || names.size >= preparedMax) return known ?? ''
    const name = `prisma_${createHash('sha256').update(sql).digest('base64url')}`
    names.set(sql, name)
    return name
  }
}

/**
 * Listens to notifications on a separate connection, and reconnects when the connection breaks.
 * @param options.onConnect called each time listening begins: notifications before it were missed, so read
 * now what they would have reported
 * @returns `close`; after it no callback is called
 */
export function listen(options: {
  connection: pg.ClientConfig | string
  channels: readonly string[]
  onNotification: (channel: string, payload: string) => void
  onConnect: () => void
  log: DatabaseLog
}): { close(): Promise<void> } {
  const closing = new AbortController()
  const done = keepListening(options, closing.signal)
  return {
    close: async () => {
      closing.abort()
      await done
    },
  }
}

async function keepListening(options: Parameters<typeof listen>[0], closing: AbortSignal): Promise<void> {
  let pauseMs = reconnectMs.first
  while (!closing.aborted) {
    const client = new pg.Client({
      application_name: 'merchant-payments listener',
      ...withStartupOptions(options.connection, []),
      connectionTimeoutMillis: waits.connectMs,
      keepAlive: true,
    })
    const ended = new Promise<void>((settle) => client.once('end', settle))
    const abort = () => void client.end()
    client.on('error', ({ message }) => options.log(`database listener lost its connection: ${message}`))
    client.on('notification', ({ channel, payload }) => {
      if (!closing.aborted) options.onNotification(channel, payload ?? '')
    })
    try {
      await client.connect()
      await client.query(
        options.channels.map((channel) => `listen ${client.escapeIdentifier(channel)}`).join(';'),
      )
      closing.addEventListener('abort', abort)
      if (!closing.aborted) options.onConnect()
      pauseMs = reconnectMs.first
      if (!closing.aborted) await ended
    } catch (error) {
      if (!closing.aborted) options.log(`database listener cannot connect: ${String(error)}`)
    } finally {
      closing.removeEventListener('abort', abort)
      await client.end().catch(() => {})
    }
    await sleep(pauseMs, undefined, { signal: closing }).catch(() => {})
    pauseMs = Math.min(pauseMs * 2, reconnectMs.max)
  }
}
