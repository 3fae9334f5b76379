import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { invariants } from './invariants.ts'
import { countOpen, type Snapshot, takeSnapshot } from './snapshot.ts'
import { randomFrom } from '../kit/random.ts'
import { type PlannedKill, planOf } from './plan.ts'
import { StuckError } from './stuck.ts'
import { work } from './operations.ts'
import type { WorkloadClient } from './workload.ts'
import { advanceClock, openSystem, type CrashSystem } from './system.ts'

export interface CrashOptions {
  seed: number
  cycles: number
  /** Processes of the service over one database. */
  processes: number
  /** The source tree that the service runs from. */
  tree: string
  /** The invariants are checked after this many cycles, and everything at the end. */
  checkEvery: number
  /** Ends the run and all that it started. */
  signal: AbortSignal
  say(line: string): void
}

export interface BrokenInvariant {
  invariant: string
  words: string
}

/** The result of a run, in numbers. */
export interface CrashRun {
  seed: number
  processes: number
  /** Cycles that ran; after a violation, the number of the cycle that showed it. */
  cycles: number
  violations: BrokenInvariant[]
  /** Why the run did not come to its end, which a busy machine may cause; null where it did. */
  stuck: string | null
  /** Path of the service's log; null where nothing was wrong. */
  logPath: string | null
  requests: number
  /** Answers that named a transaction. */
  acknowledged: number
  transactions: number
  paid: number
  /** Operator calls beyond the first of their transaction. */
  resends: number
  events: number
  resets: number
  failedStarts: number
  kills: Map<string, number>
  answers: ReadonlyMap<string, number>
  drainMs: number
}

const clientsCount = 16
/**
 * The number of open things must fall within this time. Choice: far above every wait of `short-limits.ts`.
 */
const drainStuckMs = 120_000
/** After this time a call that was broken off has arrived or never will, and may be sent again. */
const calmMs = 5_000
/** The time between two steps of the clock while open things settle. */
const stepMs = 2_500

/**
 * Kills the service and its database again and again while clients work, and checks the books: the invariants
 * after every few kills, and at the end that nothing is open any more. Ends at the first violation.
 * @throws the reason of the signal, once nothing of the run is left
 */
export async function crashOnce(options: CrashOptions): Promise<CrashRun> {
  options.signal.throwIfAborted()
  const system = await openSystem(options)
  const run = emptyRun(options)
  const stop = new AbortController()
  const clients = startClients(system, options.seed, stop.signal)
  let snapshot: Snapshot | null = null
  async function check(isOver: boolean): Promise<boolean> {
    snapshot = await takeSnapshot(
      system.postgres,
      {
        acknowledgements: system.record.acknowledgements,
        batchAcknowledgements: system.record.batches,
        readers: system.readers,
      },
      system.operators.book,
    )
    run.violations = [...brokenInvariants(snapshot, isOver), ...(await readComplaints(system))]
    return run.violations.length === 0
  }
  async function pass(): Promise<void> {
    await system.operators.misbehave(true)
    options.say(`seed ${options.seed}: the run begins`)
    for (const plan of planOf(options.seed, options.cycles)) {
      run.cycles += 1
      const isDue = run.cycles % options.checkEvery === 0
      const isFine = await workAndKill(system, plan, () => (isDue ? check(false) : Promise.resolve(true)))
      run.kills.set(plan.victim, (run.kills.get(plan.victim) ?? 0) + 1)
      options.say(
        `seed ${options.seed}, cycle ${run.cycles}: ${inWords(plan)}; ${system.record.requests} requests`,
      )
      if (!isFine) break
    }
    stop.abort()
    if (run.violations.length === 0) {
      await clients
      run.drainMs = await drain(system)
      await check(true)
    }
  }
  try {
    await Promise.race([pass(), aborted(options.signal)])
  } catch (error) {
    if (!(error instanceof StuckError)) throw error
    stop.abort()
    run.stuck = await checkStuck(system, error, () => check(false))
  } finally {
    stop.abort()
    await system.close(run.violations.length > 0 || run.stuck !== null)
  }
  return summarize(run, system, snapshot)
}

/**
 * Checks the books of a run that got stuck, while nothing runs: it is allowed that something is open, and
 * nothing else.
 * @returns why it got stuck
 */
async function checkStuck(
  { services, postgres }: CrashSystem,
  reason: StuckError,
  check: () => Promise<boolean>,
): Promise<string> {
  await Promise.all(services.map((service) => service.kill()))
  try {
    await postgres.ready()
    await check()
    return reason.message
  } catch (error) {
    if (!(error instanceof StuckError)) throw error
    return `${reason.message}; its books were not read`
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    if (signal.aborted) reject(signal.reason)
  })
}

/**
 * Lets the system work until the planned kill, and kills.
 * @param check checks the books while nothing runs
 */
async function workAndKill(
  system: CrashSystem,
  plan: PlannedKill,
  check: () => Promise<boolean>,
): Promise<boolean> {
  const { services, postgres, proxy } = system
  const victims = services.filter((_, n) => plan.process === 'all' || n === plan.process % services.length)
  if (plan.moment === 'starting') {
    await Promise.all(victims.map((service) => service.kill()))
    await Promise.all(victims.map((service) => service.startAndKill(plan.afterMs)))
  } else {
    proxy.reset(plan.resets)
    await letWork(system, plan)
    if (plan.victim !== 'service') postgres.kill()
    if (plan.victim !== 'postgres') await Promise.all(victims.map((service) => service.kill()))
    proxy.reset(false)
  }
  await postgres.ready()
  const isFine = await check()
  if (isFine && plan.victim !== 'postgres') await Promise.all(victims.map((service) => service.start()))
  return isFine
}

/** Lets the time pass; on a slow machine, until enough requests were answered. */
async function letWork({ record }: CrashSystem, { afterMs, answersMin }: PlannedKill): Promise<void> {
  const begun = performance.now()
  const enough = record.answered + answersMin
  await sleep(afterMs)
  while (record.answered < enough && performance.now() - begun < 3 * afterMs) await sleep(20)
}

/** Ends the faults and waits until nothing is open, while the time of service and operators moves on. */
async function drain(system: CrashSystem): Promise<number> {
  const begun = performance.now()
  let least = Number.POSITIVE_INFINITY
  let movedAt = begun
  await system.operators.misbehave(false)
  await sleep(calmMs)
  for (;;) {
    // A service that is busy may refuse it, and is asked again.
    const refused = await advanceClock(system, 'PT15M').then(() => '', String)
    const until = performance.now() + stepMs
    while (performance.now() < until) {
      const open = await countOpen(system.postgres)
      const isOver = Object.values(open).every((count) => count === 0)
      if (isOver && (await readersAreDone(system))) return performance.now() - begun
      const left = open.open + open.asked
      if (left < least) [least, movedAt] = [left, performance.now()]
      if (performance.now() - movedAt > drainStuckMs)
        throw new StuckError(
          `for ${drainStuckMs} ms nothing came to its end: ${JSON.stringify(open)} ${refused}`,
        )
      await sleep(100)
    }
  }
}

async function readersAreDone({ postgres, readers }: CrashSystem): Promise<boolean> {
  const heads = await postgres.read((client) =>
    client.query<{ merchant_id: number; count: number }>(
      `SELECT merchant_id, count(*)::float8 AS count FROM event
       WHERE position IS NOT NULL AND data ? 'transaction_id' AND type <> 'payment_link_used'
       GROUP BY merchant_id`,
    ),
  )
  const ends = new Map(heads.rows.map((row) => [row.merchant_id, row.count]))
  return readers.every(({ merchantId, recorded }) => recorded.length >= (ends.get(merchantId) ?? 0))
}

function startClients(system: CrashSystem, seed: number, stop: AbortSignal): Promise<void[]> {
  let references = 0
  return Promise.all(
    Array.from({ length: clientsCount }, (_, index) => {
      const merchant = system.merchants[index % system.merchants.length]
      const service = system.services[Math.floor(index / 2) % system.services.length]
      if (!merchant || !service) throw new Error('a run needs a merchant')
      const client: WorkloadClient = {
        url: service.url,
        random: randomFrom(seed * 100 + index),
        merchant,
        record: system.record,
        newReference: () => `run-${(references += 1)}`,
      }
      return work(client, service.serving, stop)
    }),
  )
}

const shownMax = 5

function brokenInvariants(snapshot: Snapshot, isOver: boolean): BrokenInvariant[] {
  return Object.entries(invariants).flatMap(([invariant, holds]) => {
    const problems = holds(snapshot, isOver)
    const more = problems.length > shownMax ? [`and ${problems.length - shownMax} more`] : []
    return [...problems.slice(0, shownMax), ...more].map((words) => ({ invariant, words }))
  })
}

/** Complaints of clients, readers, the operators and the service itself. */
async function readComplaints(system: CrashSystem): Promise<BrokenInvariant[]> {
  const { record, readers, operators, logPath } = system
  const fatal = readFileSync(logPath, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{"level":60'))
  const byInvariant: Readonly<Record<string, readonly string[]>> = {
    'every answer is one that the service may give': record.complaints,
    'no reader is refused': readers.flatMap(({ complaints }) => complaints),
    'the operators’ books add up': await operators.problems(),
    'the service logs no fatal error': fatal,
  }
  return Object.entries(byInvariant).flatMap(([invariant, words]) =>
    words.slice(0, shownMax).map((each) => ({ invariant, words: each })),
  )
}

function inWords({ victim, process, moment, afterMs, resets }: PlannedKill): string {
  const which = victim === 'postgres' ? '' : `, process ${process},`
  return `kill -9 of ${victim}${which} ${moment} after ${afterMs} ms${resets ? ', connections reset' : ''}`
}

function emptyRun({ seed, processes }: CrashOptions): CrashRun {
  const counts = { cycles: 0, requests: 0, acknowledged: 0, transactions: 0, paid: 0, resends: 0, events: 0 }
  const more = { resets: 0, failedStarts: 0, drainMs: 0, kills: new Map(), answers: new Map() }
  return { seed, processes, violations: [], stuck: null, logPath: null, ...counts, ...more }
}

function summarize(run: CrashRun, system: CrashSystem, snapshot: Snapshot | null): CrashRun {
  const { record, proxy, services, logPath } = system
  const { transactions: moved = [], payouts = [], recipients = [] } = snapshot ?? {}
  const transactions = [...moved, ...payouts, ...recipients]
  return {
    ...run,
    logPath: run.violations.length > 0 || run.stuck !== null ? logPath : null,
    requests: record.requests,
    acknowledged: record.acknowledgements.filter(({ id }) => id !== null).length,
    transactions: transactions.length,
    paid: transactions.filter(({ status }) => status === 'success').length,
    resends: transactions.reduce((sum, { attempt }) => sum + (attempt ?? 1) - 1, 0),
    events: snapshot?.events.length ?? 0,
    resets: proxy.count(),
    failedStarts: services.reduce((sum, service) => sum + service.failedStarts(), 0),
    answers: record.answers,
  }
}
