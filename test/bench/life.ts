import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { UsageError } from '../kit/command-line.ts'
import { proveLedger } from './compare.ts'
import { merchantsMax, type Part, partsOf } from './life/parts.ts'
import type { Tree } from './life/programs.ts'
import { type PartResult, partTable } from './life/report.ts'
import {
  copyPrepared,
  type PreparedDatabase,
  idleTurn,
  lifeTurn,
  type Limit,
  prepareFullDatabase,
  prepareDatabase,
  openLimit,
  type TurnResult,
} from './life/turn.ts'
import { type BenchServer, openServer } from './server.ts'

export interface LifeOptions {
  rounds: number
  seconds: number
  rows: number
  /** Words that a part's title must have. */
  only: string
  /** Payments per second, in place of clients that wait. */
  rate: number | null
  /** Folder of another checkout whose programs take turns with these. */
  tree: string | null
  json: boolean
}

const here: Tree = { name: 'this tree', folder: join(import.meta.dirname, '../..') }

const notes = [
  'A life: the request over HTTP, the operator over HTTP, until a subscriber by WebSocket sees it settled.',
  'Service, simulator and PostgreSQL are programs of their own; ms are processor time per payment.',
  'p50 and p99 are milliseconds until settled; answered: until the answer. MB: memory of all programs.',
  'limit: bare node:http and pg, one named statement that writes a payment and its outbox row; no token.',
  'Per payment: commits; versions: rows inserted, updated or deleted; scans: whole reads of growing tables;',
  'full pages: those that the WAL holds whole (8 kB, less their gap) after a checkpoint.',
  'The times of a recipient are those of its batch of 50, which is made and processed; four clients do that.',
  'Each part of the new database has a copy that no query has seen, in its first minute.',
]

/**
 * Whole lives of payments: from the request over HTTP to the settled event at a subscriber, with the service
 * and the simulator as programs of their own.
 */
export async function life(options: LifeOptions, say: (words: string) => void): Promise<void> {
  const words = options.only.split(/[ ,]+/).filter((word) => word !== '')
  const parts = partsOf(words, options.rate, options.rows)
  if (parts.length === 0) throw new UsageError(`--only ${options.only}: no part has these words in its title`)
  const trees = options.tree === null ? [here] : [here, otherTree(options.tree)]
  const folder = mkdtempSync(join(tmpdir(), 'merchant-payments-bench-'))
  const server = await openServer()
  // An interrupted bench ends the programs that it has started.
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
  const run: LifeRun = { server, folder, empty: [], full: null, limit: null, say }
  try {
    for (const tree of trees) {
      say(`preparing ${tree.name}`)
      run.empty.push(await prepareDatabase(server, tree, folder, merchantsMax))
    }
    const [first] = run.empty
    if (first) run.limit = await openLimit(server, first)
    const results: PartResult[] = []
    for (const part of parts) {
      const result = await runPart(run, part, options)
      results.push(result)
      if (!options.json) write(`${partTable(result)}\n\n`)
    }
    if (run.full) {
      say('proving the books')
      const began = performance.now()
      await proveLedger(run.full.database)
      const seconds = ((performance.now() - began) / 1_000).toFixed(0)
      if (!options.json) write(`The books of all rows are proven (${seconds} s).\n`)
    }
    if (options.json) write(`${JSON.stringify({ workload: 'life', ...options, parts: results }, null, 2)}\n`)
    else write(`${notes.join('\n')}\n`)
  } finally {
    await run.limit?.close()
    for (const prepared of [...run.empty, run.full]) await prepared?.database.drop()
    await server.close()
    await rm(folder, { recursive: true, force: true })
  }
}

/** Everything that the parts of a run share. */
interface LifeRun {
  server: BenchServer
  folder: string
  /** New databases, one of each tree; turns work on copies. */
  empty: PreparedDatabase[]
  /** The database with many rows, once a part has needed it; all turns work on itself. */
  full: PreparedDatabase | null
  limit: Limit | null
  say(words: string): void
}

function otherTree(folder: string): Tree {
  return { name: basename(resolve(folder)), folder: resolve(folder) }
}

/** Each round begins with another tree, so that what the machine does beside them meets all. */
async function runPart(run: LifeRun, part: Part, options: LifeOptions): Promise<PartResult> {
  const { rounds, seconds } = options
  const databases = part.full ? [await openFull(run, options.rows)] : run.empty
  const turns = new Map<string, TurnResult[]>(databases.map(({ tree }) => [tree.name, []]))
  const limits: TurnResult[] = []
  for (let round = 0; round < rounds; round += 1) {
    run.say(`${part.title}: round ${round + 1} of ${rounds}`)
    if (run.limit && part.rate === null && !part.idle)
      limits.push(await run.limit.turn(part.clients, part.merchants, limitSeconds))
    for (const prepared of round % 2 ? databases.toReversed() : databases) {
      run.say(`${part.title}: round ${round + 1} of ${rounds}, ${prepared.tree.name}`)
      turns.get(prepared.tree.name)?.push(await takeTurn(run.server, prepared, part, seconds))
    }
  }
  // This tree comes last: it is compared with all above it.
  const contenders = [...turns].map(([name, taken]) => ({ name, turns: taken })).toReversed()
  const base = limits.length > 0 ? [{ name: 'limit: one statement', turns: limits }] : []
  return { title: part.title, goals: part.goals, contenders: [...base, ...contenders] }
}

const limitSeconds = 2

async function openFull(run: LifeRun, rows: number): Promise<PreparedDatabase> {
  run.say(`filling a database with ${rows} transactions`)
  const { server, folder } = run
  run.full ??= await prepareFullDatabase(server, here, folder, { merchantsCount: merchantsMax, rows })
  return run.full
}

async function takeTurn(
  server: BenchServer,
  prepared: PreparedDatabase,
  part: Part,
  seconds: number,
): Promise<TurnResult> {
  const own = part.full ? prepared : await copyPrepared(server, prepared)
  const chosen = { ...own, merchants: own.merchants.slice(0, part.merchants) }
  try {
    return part.idle ? await idleTurn(server, chosen, part) : await lifeTurn(server, chosen, part, seconds)
  } finally {
    if (own !== prepared) await own.database.drop()
  }
}

function write(text: string): void {
  if (process.stderr.isTTY) process.stderr.write('\r\u001B[K')
  process.stdout.write(text)
}
