import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { constants } from 'node:os'
import { findMutant, processesOf } from './find-mutant.ts'
import { crashOnce, type CrashRun } from './crash-run.ts'
import { lastWarnings } from './under-test.ts'
import { exitWritten, runProgram, UsageError, wholeNumber } from '../kit/command-line.ts'
import type { Mutant } from '../mutants/mutant.ts'
import { chooseMutants, mutants } from '../mutants/mutants.ts'

const usage = `Kills the service and its database while clients work: no franc may be lost or made.
By every fourth seed two processes of the service work over the one database.

  --seeds N      how many runs (8)
  --cycles N     kills in each run (10)
  --seed N       the first seed; the same seed plans the same kills (by the clock)
  --parallel N   runs at once (2)
  --planted      plants bugs in copies of the sources and shows that each is found; words that follow choose
                 them, as for \`npm run mutants\`
  --strict       a run that got stuck counts as a violation, although a busy machine may be the reason
  --quiet        only the summary
`

const root = join(import.meta.dirname, '../..')
const ofCrashes = mutants.filter(({ isFoundByCrashes }) => isFoundByCrashes)
const say = (line: string) => void process.stdout.write(`${line}\n`)

function readNumbers() {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean', default: false } as const
  const { values, positionals } = parseArgs({
    options: {
      seeds: text,
      cycles: text,
      seed: text,
      parallel: text,
      planted: flag,
      strict: flag,
      quiet: flag,
      help: flag,
    },
    allowPositionals: true,
  })
  const number = (name: 'seeds' | 'cycles' | 'seed' | 'parallel', usual: number) =>
    wholeNumber(name, values[name] ?? String(usual))
  if (!values.planted && positionals.length > 0)
    throw new UsageError(`${positionals.join(' ')}: names are of planted bugs, and need --planted`)
  return {
    help: values.help,
    planted: values.planted ? chooseMutants(ofCrashes, positionals) : null,
    isStrict: values.strict,
    say: values.quiet ? () => {} : say,
    seeds: number('seeds', 8),
    cycles: number('cycles', 10),
    seed: number('seed', 1 + (Date.now() % 1_000_000)),
    parallel: number('parallel', 2),
  }
}

/** Aborts when the program is to end; the runs then end all that they started. */
const ending = new AbortController()

type Numbers = ReturnType<typeof readNumbers>

/** Runs each seed, several at once. @throws the error of a run, once no run is under way any more */
async function runAll<T>(
  items: readonly T[],
  parallel: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const waiting = [...items]
  const worker = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item)
  }
  const workers = await Promise.allSettled(
    Array.from({ length: parallel }, () => worker().finally(() => waiting.splice(0))),
  )
  const broken = workers.find(({ status }) => status === 'rejected')
  if (broken?.status === 'rejected') throw broken.reason
}

function report(run: CrashRun, isStrict: boolean): void {
  const of = (counts: ReadonlyMap<string, number>) =>
    Array.from(counts, ([name, count]) => `${name} ${count}`).join(', ')
  say(
    `seed ${run.seed}: ${run.violations.length} violations in ${run.cycles} cycles ` +
      `(${run.processes} processes; ${of(run.kills)}; ` +
      `${run.resets} connections reset, ${run.failedStarts} failed starts); ` +
      `${run.requests} requests (${of(run.answers)}), ${run.acknowledged} acknowledged; ` +
      `${run.transactions} transactions, ${run.paid} paid, ${run.resends} sent again, ` +
      `${run.events} events; drained in ${Math.round(run.drainMs)} ms`,
  )
  for (const { invariant, words } of run.violations) say(`  VIOLATED: ${invariant}: ${words}`)
  if (run.stuck !== null) say(`  ${isStrict ? 'VIOLATED: it comes back' : 'INCONCLUSIVE'}: ${run.stuck}`)
  if (!run.logPath) return
  say(`  log: ${run.logPath}; again: npm run crash -- --seeds 1 --seed ${run.seed}`)
  for (const line of lastWarnings(run.logPath, 80)) say(`  | ${line}`)
}

/** @returns 0 where every planted bug was found */
async function runMutants(planted: readonly Mutant[], numbers: Numbers): Promise<number> {
  let missed = 0
  await runAll(planted, numbers.parallel, async (mutant) => {
    const { run, stuck, cycles, ms } = await findMutant(mutant, {
      root,
      seed: numbers.seed,
      signal: ending.signal,
      say: numbers.say,
    })
    const time = `${Math.round(ms / 1_000)} s`
    const [violation] = run?.violations ?? []
    missed += violation ? 0 : 1
    const words = violation
      ? `seen in cycle ${cycles} (seed ${run?.seed}) by "${violation.invariant}": ${violation.words}`
      : [`nothing seen in ${cycles} cycles`, ...stuck].join('; ')
    say(`${violation ? 'ok' : 'WRONG'}  ${mutant.name}: ${words}; ${time}`)
  })
  say(`${planted.length - missed} of ${planted.length} planted bugs found`)
  return missed > 0 ? 1 : 0
}

async function runCrash(): Promise<number> {
  const numbers = readNumbers()
  if (numbers.help) {
    say(usage)
    return 0
  }
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => ending.abort(name))
  try {
    return await (numbers.planted ? runMutants(numbers.planted, numbers) : runCrashes(numbers))
  } catch (error) {
    if (error !== ending.signal.reason) throw error
    const name = ending.signal.reason as 'SIGINT' | 'SIGTERM'
    say(`ended by ${name}`)
    return 128 + constants.signals[name]
  }
}

async function runCrashes(numbers: Numbers): Promise<number> {
  const { seeds, cycles, seed, parallel, isStrict } = numbers
  const runs: CrashRun[] = []
  const begun = performance.now()
  await runAll(
    Array.from({ length: seeds }, (_, index) => seed + index),
    parallel,
    async (each) => {
      const run = await crashOnce({
        seed: each,
        cycles,
        processes: processesOf(each),
        tree: root,
        checkEvery: 2,
        signal: ending.signal,
        say: numbers.say,
      })
      runs.push(run)
      report(run, isStrict)
    },
  )
  const sum = (count: (run: CrashRun) => number) => runs.reduce((total, run) => total + count(run), 0)
  const violations = sum((run) => run.violations.length + (isStrict && run.stuck !== null ? 1 : 0))
  say(
    `${violations} violations: ${sum((s) => s.cycles)} cycles over ${seeds} seeds, ` +
      `${sum((s) => s.requests)} requests, ` +
      `${sum((s) => s.acknowledged)} acknowledged, ${Math.round((performance.now() - begun) / 1_000)} s`,
  )
  return violations > 0 ? 1 : 0
}

// Exit even where a broken run left a handle open.
await runProgram(runCrash)
await exitWritten()
