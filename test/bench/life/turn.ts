import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startChild } from '../child.ts'
import { moneyRequests, named } from '../collect.ts'
import { load } from '../load.ts'
import type { LimitOptions, LimitReady } from '../processes/limit.ts'
import type { ProductReady } from '../processes/product.ts'
import type { BenchDatabase, BenchServer } from '../server.ts'
import { countsOf, memoryOf, startMeter, writesBetween } from './costs.ts'
import { openFeed } from './feed.ts'
import { fillDatabase } from './full.ts'
import { kinds } from './kinds.ts'
import { type Lives, liveAtRate, liveInTurn, type LifeSetup } from './lives.ts'
import type { Part } from './parts.ts'
import { makeMerchants, type Programs, startPrograms, type Tree } from './programs.ts'

/** A database that the programs of a tree work on. */
export interface PreparedDatabase {
  tree: Tree
  database: BenchDatabase
  dataDir: string
  merchants: ProductReady['merchants']
}

/** The figures of one turn by the titles of their columns. */
export type Figures = Record<string, number>

export interface TurnResult {
  figures: Figures
  /** Tables that grow and were read from end to end. */
  scannedTables: string[]
}

/** Makes a database with merchants; the first merchant has money to pay out. */
export async function prepareDatabase(
  server: BenchServer,
  tree: Tree,
  folder: string,
  merchantsCount: number,
): Promise<PreparedDatabase> {
  const database = await server.createDatabase()
  const dataDir = join(folder, tree.name)
  const merchants = await makeMerchants(tree, database.url, dataDir, merchantsCount)
  const prepared: PreparedDatabase = { tree, database, dataDir, merchants }
  await withPrograms(prepared, 1, async ({ ports }) => {
    const richest = { ...prepared, merchants: merchants.slice(0, 1) }
    // The largest amount of a collection; 60 of them pay 60,000 deposits.
    await withSetup(richest, ports, kinds.payment('OperatorA', 1_000_000), 1, async (setup) => {
      for (let paid = 0; paid < funds; ) paid += (await liveInTurn(setup, 16)).count
    })
  })
  // Without these counts no autovacuum analyzes the database from which new ones are copied.
  await database.owner.query('SELECT pg_stat_reset()')
  await database.release()
  return prepared
}

const funds = 60

/** Makes a database whose tables are full; its books give every merchant money to pay out. */
export async function prepareFullDatabase(
  server: BenchServer,
  tree: Tree,
  folder: string,
  { merchantsCount, rows }: { merchantsCount: number; rows: number },
): Promise<PreparedDatabase> {
  const database = await server.createDatabase()
  const dataDir = join(folder, `${tree.name}, full`)
  const made = await makeMerchants(tree, database.url, dataDir, merchantsCount)
  const merchants = made.toSorted((a, b) => a.merchantId - b.merchantId)
  await fillDatabase(
    database.owner,
    rows,
    merchants.map(({ merchantId }) => merchantId),
  )
  return { tree, database, dataDir, merchants }
}

/**
 * Copies a database for programs that begin on it. The service takes a copy for a restored backup and lets no
 * money leave, so the copy gets its own identity, and a folder that has seen no other copy.
 */
export async function copyPrepared(
  server: BenchServer,
  prepared: PreparedDatabase,
): Promise<PreparedDatabase> {
  const database = await server.createDatabase(prepared.database)
  // Older trees do not look.
  const { rows } = await database.owner.query("SELECT FROM pg_tables WHERE tablename = 'installation'")
  if (rows.length > 0)
    await database.owner.query(
      `UPDATE installation SET database_oid = d.oid::text FROM pg_database d
       WHERE d.datname = current_database()`,
    )
  const dataDir = `${prepared.dataDir}, ${database.name}`
  await cp(prepared.dataDir, dataDir, { recursive: true })
  return { ...prepared, database, dataDir }
}

/** The bare server of the one-statement limit, on a database of its own: the service refuses its tables. */
export interface Limit {
  /** @returns what so many clients got in these seconds */
  turn(clients: number, merchantsCount: number, seconds: number): Promise<TurnResult>
  close(): Promise<void>
}

export async function openLimit(server: BenchServer, prepared: PreparedDatabase): Promise<Limit> {
  const { database, merchants } = await copyPrepared(server, prepared)
  const options: LimitOptions = { workload: 'collect', databaseUrl: database.url }
  const child = await startChild<LimitReady>('limit.ts', options)
  const payment = { amount: 5_000, customer_phone: '70000001', payment_method: 'OperatorA' }
  return {
    async turn(clients, merchantsCount, seconds) {
      const next = moneyRequests('/', merchants.slice(0, merchantsCount), () => payment)(named)
      const { port } = child.ready
      const measured = await load({ port, connections: clients, seconds, status: 202, next })
      return { figures: { 'lives/s': measured.value, 'p99 ms': measured.p99Ms }, scannedTables: [] }
    },
    async close() {
      await child.close()
      await database.drop()
    },
  }
}

/** Whole lives on a database, with programs that are started for it. */
export async function lifeTurn(
  server: BenchServer,
  prepared: PreparedDatabase,
  part: Part,
  seconds: number,
): Promise<TurnResult> {
  const { owner } = prepared.database
  let [lives, all] = [null as Lives | null, 0]
  let figures: Figures = {}
  let before = await countsOf(owner)
  await withPrograms(prepared, part.processes, async (programs) => {
    // PostgreSQL counts what a session did up to a second later.
    await sleep(countedAfterMs)
    before = await countsOf(owner)
    const kind = kinds[part.kind](part.operator)
    await withSetup(prepared, programs.ports, kind, seconds, async (setup) => {
      const live = (within: LifeSetup) =>
        part.rate === null ? liveInTurn(within, part.clients) : liveAtRate(within, part.rate)
      const warmUp = await live({ ...setup, seconds: Math.min(warmUpSeconds, seconds) })
      const meter = await startMeter(owner, programs, server.postmaster)
      lives = await live(setup)
      // The programs finish in the background what belongs to these payments.
      await sleep(afterwardsMs)
      const spent = await meter.read()
      all = warmUp.count + lives.count
      const each = (micros: number) => micros / 1_000 / (lives?.count ?? 0)
      const memory = memoryOf(programs, server.postmaster)
      figures = {
        ...timesOf(lives),
        'service ms': each(spent.service),
        'simulator ms': each(spent.simulator),
        'postgres ms': each(spent.postgres),
        'WAL kB': each(spent.walBytes),
        MB: memory.service + memory.simulator + memory.postgres,
      }
    })
  })
  const { scannedTables, ...writes } = writesBetween(before, await countsOf(owner), all)
  figures = {
    ...figures,
    'full pages': writes.fullPages,
    commits: writes.commits,
    versions: writes.versions,
    'HOT updates': writes.hotUpdates,
    scans: writes.scans,
    'rows scanned': writes.scanned,
  }
  return { figures, scannedTables }
}

const countedAfterMs = 1_200
const warmUpSeconds = 1.5
const afterwardsMs = 1_000

function timesOf({ perSecond, answered, settled }: Lives): Figures {
  return {
    'lives/s': perSecond,
    'p50 ms': settled.p50,
    'p99 ms': settled.p99,
    'answered p50': answered.p50,
    'answered p99': answered.p99,
  }
}

/** Megabytes of all programs that have nothing to do. */
export async function idleTurn(
  server: BenchServer,
  prepared: PreparedDatabase,
  part: Part,
): Promise<TurnResult> {
  let figures: Figures = {}
  await withPrograms(prepared, part.processes, async (programs) => {
    await sleep(idleMs)
    const { service, simulator, postgres } = memoryOf(programs, server.postmaster)
    const MB = service + simulator + postgres
    figures = { 'service MB': service, 'simulator MB': simulator, 'postgres MB': postgres, MB }
  })
  return { figures, scannedTables: [] }
}

/** After this time the service has given back what its start took. */
const idleMs = 10_000

async function withPrograms(
  { tree, database, dataDir }: PreparedDatabase,
  processes: number,
  work: (programs: Programs) => Promise<void>,
): Promise<void> {
  const programs = await startPrograms(tree, { databaseUrl: database.url, dataDir, processes })
  try {
    await work(programs)
  } finally {
    await programs.stop()
  }
}

async function withSetup(
  { merchants }: PreparedDatabase,
  ports: readonly number[],
  kind: LifeSetup['kind'],
  seconds: number,
  work: (setup: LifeSetup) => Promise<void>,
): Promise<void> {
  const tokens = merchants.map(({ token }) => token)
  const feed = await openFeed(ports, tokens, kind.watched)
  try {
    await work({ kind, ports, tokens, feed, seconds })
  } finally {
    feed.close()
  }
}
