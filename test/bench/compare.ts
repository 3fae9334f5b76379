import { setTimeout as sleep } from 'node:timers/promises'
import { type Child, startChild } from './child.ts'
import type { BenchFixture } from './fixture.ts'
import { load, type Request } from './load.ts'
import type { LimitOptions, LimitQuestion, LimitReady } from './processes/limit.ts'
import { type Product, startProduct } from './product.ts'
import type { BenchEntry, BenchOptions, BenchRun, Goal, Measurement, Workload } from './rounds.ts'

/** The service with its database, and the limits beside it. */
export interface Sides {
  fixture: BenchFixture
  product: Product
  /** Starts a limit on the same database and with the same operators. */
  start: (options: LimitOptions) => Promise<Limit>
  startProcess: <Ready>(name: string, options: object) => Promise<Child<Ready>>
}

type Limit = Child<LimitReady> & Side

interface Setup {
  /** How many, or how many readers each of them has. */
  merchants: number | readonly number[]
  /** Whether each merchant has money to pay out, and whether the books are proven afterwards. */
  books?: 'funded' | 'proven'
}

/** Makes a workload of what it compares: starts the sides, and ends them in the other order. */
export function compare(
  { merchants, books }: Setup,
  open: (sides: Sides, options: BenchOptions) => Promise<Omit<BenchRun, 'close'>>,
): Workload {
  return async (fixture, options) => {
    const { owner, url: databaseUrl } = fixture
    const product = await startProduct(fixture, merchants)
    if (books === 'funded')
      await owner.query(
        `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
         SELECT id, 'funding:bench-' || id, 'fund', 'funding', 'available', 900000000000, now()
         FROM merchant`,
      )
    const children: Child<unknown>[] = []
    const startProcess = async <Ready>(name: string, given: object): Promise<Child<Ready>> => {
      const child = await startChild<Ready>(name, given)
      children.push(child)
      return child
    }
    const start: Sides['start'] = async (given) => {
      const { operatorsUrl } = product
      const limit = await startProcess<LimitReady>('limit.ts', { databaseUrl, operatorsUrl, ...given })
      return { ...limit, port: limit.ready.port }
    }
    const run = await open({ fixture, product, start, startProcess }, options)
    return {
      ...run,
      async close() {
        await Promise.all(children.map((child) => child.close()))
        await product.close()
        if (books) await proveLedger(fixture)
      },
    }
  }
}

/** @throws Error where the books of the database do not hold */
export async function proveLedger({ owner }: Pick<BenchFixture, 'owner'>): Promise<void> {
  const { rows } = await owner.query('SELECT * FROM audit_ledger(true) LIMIT 5')
  if (rows.length > 0) throw new Error(`The ledger does not hold: ${JSON.stringify(rows)}`)
}

interface Side {
  pid: number
  port: number
}

/** Clients that send one request after another to a side. */
export function requests(
  name: string,
  { pid, port }: Side,
  asked: { connections: number; status: number; words?: string; next: () => Request },
  more: Pick<BenchEntry, 'goal' | 'prepare'> = {},
): BenchEntry {
  return { name, processes: [pid], measure: (seconds) => load({ port, seconds, ...asked }), ...more }
}

/** One client that sends the same request again and again. The value is the median, in milliseconds. */
export function latency(
  name: string,
  { pid, port }: Side,
  { request, ...asked }: { status: number; words?: string; request: Request },
  goal?: Goal,
): BenchEntry {
  return {
    name,
    processes: [pid],
    goal,
    async measure(seconds) {
      const timed = await load({ port, connections: 1, seconds, next: () => request, ...asked })
      return { ...timed, value: timed.medianMs }
    },
  }
}

/** A limit that works by itself for so long. */
export function loop(
  name: string,
  limit: Limit,
  prepare?: BenchEntry['prepare'],
  question: (seconds: number) => LimitQuestion = (seconds) => ({ seconds }),
): BenchEntry {
  const measure = async (seconds: number) => (await limit.ask(question(seconds))) as Measurement
  return { name, processes: [limit.pid], ...(prepare && { prepare }), measure }
}

/** An engine of the service: begins, works for so long, is counted, and is halted. */
export function engine(
  name: string,
  { pid }: Product,
  goal: Goal,
  steps: {
    prepare: (seconds: number) => Promise<void>
    begin: () => Promise<unknown>
    done: () => Promise<number>
    halt: () => Promise<unknown>
  },
): BenchEntry {
  return {
    name,
    processes: [pid],
    goal,
    prepare: steps.prepare,
    async measure(seconds) {
      const begun = performance.now()
      await steps.begin()
      await sleep(seconds * 1_000)
      const operations = await steps.done()
      const value = operations / ((performance.now() - begun) / 1_000)
      await steps.halt()
      return { value, operations, p99Ms: Number.NaN }
    },
  }
}

export function bearer({ token }: { token: string }): Record<string, string> {
  return { Authorization: `Bearer ${token}` }
}
