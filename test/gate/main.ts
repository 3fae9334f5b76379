import { join } from 'node:path'
import { runProgram } from '../kit/command-line.ts'
import { type RunReport, runVitest } from '../kit/run-vitest.ts'
import { type Failure, failuresOf, filesToRepeat, lineOf } from './judge.ts'

// `npm test` as `.ci/run` judges it; words that follow choose some files. A file that fails is run again by
// itself, three times, in fresh processes: where all three pass, the fault was luck. It is printed as
// UNSTEADY and counted apart, to be cured in the next change.

const tree = join(import.meta.dirname, '../..')
const minute = 60_000
const repeats = 3
const slowestShown = 40
const say = (line: string) => void process.stdout.write(`${line}\n`)

async function judge(): Promise<number> {
  const run = await runVitest({ tree, args: process.argv.slice(2), limitMs: 40 * minute, shows: true })
  saySlowest(run)
  const failures = failuresOf(run)
  const steady = await withoutLuck(failures)
  const passed = run.files.flatMap(({ tests }) => tests).filter(({ state }) => state === 'passed').length
  const unsteady = failures.length - steady.length
  if (unsteady > 0) say(`\n${unsteady} unsteady`)
  for (const failure of steady) say(`FAILED ${lineOf(failure)}`)
  say(`\n${passed} passed, ${steady.length} failed`)
  return steady.length > 0 || run.files.length === 0 ? 1 : 0
}

function saySlowest({ files, ms }: RunReport): void {
  const work = files.reduce((sum, file) => sum + file.ms, 0)
  say(`\n${files.length} files, ${seconds(work)} of work in ${seconds(ms)}. The ${slowestShown} slowest:`)
  for (const { path, ms: took } of files.toSorted((a, b) => b.ms - a.ms).slice(0, slowestShown))
    say(`${seconds(took).padStart(8)}  ${path}`)
}

/** Runs the files of a few failures again. @returns the failures that remain */
async function withoutLuck(failures: readonly Failure[]): Promise<readonly Failure[]> {
  const files = filesToRepeat(failures)
  if (failures.length === 0 || files === null) return failures
  for (const path of files) {
    for (let time = 1; time <= repeats; time += 1) {
      say(`\n=== again, alone, ${time} of ${repeats}: ${path}`)
      const again = failuresOf(await runVitest({ tree, args: [path], limitMs: 10 * minute, shows: true }))
      // The later failures say more about a wrong change than the first.
      if (again.length > 0) return [...failures, ...again]
    }
  }
  for (const failure of failures) say(`UNSTEADY ${lineOf(failure)}`)
  return []
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}

await runProgram(judge)
