import { readdirSync, readFileSync } from 'node:fs'
import type pg from 'pg'
import { type CpuAccount, cpuOf, cpuSince } from '../cpu.ts'
import type { Programs } from './programs.ts'

/** Microseconds of processor time. */
export interface Processor {
  service: number
  simulator: number
  postgres: number
}

/** Processor time and log of all programs since some moment. */
export interface Meter {
  read(): Promise<Processor & { walBytes: number }>
}

export async function startMeter(owner: pg.Pool, programs: Programs, postmaster: number): Promise<Meter> {
  const services = programs.services.map(({ pid }) => pid)
  const simulator = [programs.simulator.pid]
  const before = {
    services: cpuOf(services),
    simulator: cpuOf(simulator),
    postgres: postgresMicros(postmaster),
  }
  const wal = await walPosition(owner)
  const since = (account: CpuAccount, pids: readonly number[]) => cpuSince(account, pids) ?? Number.NaN
  return {
    async read() {
      return {
        service: since(before.services, services),
        simulator: since(before.simulator, simulator),
        postgres: postgresMicros(postmaster) - before.postgres,
        walBytes: (await walPosition(owner)) - wal,
      }
    },
  }
}

async function walPosition(owner: pg.Pool): Promise<number> {
  const { rows } = await owner.query<{ at: string }>(
    "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS at",
  )
  return Number(rows[0]?.at)
}

/** Microseconds of the whole server so far: its living processes, and those that it has waited for. */
function postgresMicros(postmaster: number): number {
  const living = cpuOf(childrenOf(postmaster).concat(postmaster)) ?? new Map<string, number>()
  let micros = 0
  for (const nanoseconds of living.values()) micros += nanoseconds / 1_000
  const fields = statOf(postmaster)
  return micros + (Number(fields[13]) + Number(fields[14])) * tickMicros
}

const tickMicros = 10_000

function childrenOf(parent: number): number[] {
  return readdirSync('/proc').flatMap((name) => {
    const pid = Number(name)
    if (!Number.isInteger(pid)) return []
    return Number(statOf(pid)[1]) === parent ? [pid] : []
  })
}

/** The fields behind the name of the program, which may hold spaces; empty where it has ended. */
function statOf(pid: number): string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}

/** Resident megabytes; memory that processes share is divided between them. */
export function memoryOf(programs: Programs, postmaster: number): Record<keyof Processor, number> {
  const sum = (pids: readonly number[]) => pids.reduce((all, pid) => all + shareOf(pid), 0)
  return {
    service: sum(programs.services.map(({ pid }) => pid)),
    simulator: sum([programs.simulator.pid]),
    postgres: sum([postmaster, ...childrenOf(postmaster)]),
  }
}

function shareOf(pid: number): number {
  try {
    return Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) / 1_024
  } catch {
    return 0
  }
}

interface TableCounts {
  scans: number
  scanned: number
  inserted: number
  updated: number
  hot: number
  deleted: number
}

/** PostgreSQL's counts of a database so far. They are complete only after the programs have ended. */
export interface DatabaseCounts {
  commits: number
  /** Whole pages that were written to the log, because a checkpoint came before. */
  fullPages: number
  tables: ReadonlyMap<string, TableCounts>
}

export async function countsOf(owner: pg.Pool): Promise<DatabaseCounts> {
  const { rows } = await owner.query<TableCounts & Omit<DatabaseCounts, 'tables'> & { name: string }>(`
    SELECT t.relname AS name, t.seq_scan::float AS scans, t.seq_tup_read::float AS scanned,
      t.n_tup_ins::float AS inserted, t.n_tup_upd::float AS updated, t.n_tup_hot_upd::float AS hot,
      t.n_tup_del::float AS deleted, d.xact_commit::float AS commits, w.wal_fpi::float AS "fullPages"
    FROM pg_stat_user_tables t, pg_stat_wal w, pg_stat_database d WHERE d.datname = current_database()`)
  const { commits = 0, fullPages = 0 } = rows[0] ?? {}
  return { commits, fullPages, tables: new Map(rows.map((row) => [row.name, row])) }
}

/** Per payment. */
interface Writes {
  commits: number
  fullPages: number
  /** Row versions: inserted, updated or deleted. */
  versions: number
  /** The updates among them that needed no new index entry. */
  hotUpdates: number
  scans: number
  /** Rows that these scans read. */
  scanned: number
  /** The tables that grow and were scanned from end to end, for example `event 12 x 340 rows`. */
  scannedTables: string[]
}

export function writesBetween(before: DatabaseCounts, after: DatabaseCounts, payments: number): Writes {
  const writes: Writes = {
    commits: (after.commits - before.commits) / payments,
    fullPages: (after.fullPages - before.fullPages) / payments,
    versions: 0,
    hotUpdates: 0,
    scans: 0,
    scanned: 0,
    scannedTables: [],
  }
  for (const [name, now] of after.tables) {
    const was = before.tables.get(name) ?? nothing
    const more = (key: keyof TableCounts) => now[key] - was[key]
    writes.versions += (more('inserted') + more('updated') + more('deleted')) / payments
    writes.hotUpdates += more('hot') / payments
    // A queue is empty again at the end: it may be read whole.
    const grows = (more('inserted') - more('deleted')) / payments >= growing
    if (!grows || more('scans') === 0) continue
    writes.scans += more('scans') / payments
    writes.scanned += more('scanned') / payments
    writes.scannedTables.push(
      `${name} ${more('scans')} x ${Math.round(more('scanned') / more('scans'))} rows`,
    )
  }
  return writes
}

const growing = 0.1
const nothing: TableCounts = { scans: 0, scanned: 0, inserted: 0, updated: 0, hot: 0, deleted: 0 }
