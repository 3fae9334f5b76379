import { appendFileSync, globSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Failure, failuresOf } from '../gate/judge.ts'
import { runProgram, UsageError, wholeNumber } from '../kit/command-line.ts'
import { randomFrom } from '../kit/random.ts'
import { regressions } from '../kit/regressions.ts'
import { runVitest } from '../kit/run-vitest.ts'

const usage = `Searches for bugs by chance and measures by the clock: one test file at a time, each with a new
seed, until the time is over. Words that follow choose the files whose names hold one of them.

  --minutes N    how long (60); a file that was begun is ended
  --seed N       the seed of every file, once: replays a finding
  --list         prints the files and runs nothing

Each finding is a line of JSON in soak.jsonl, with the command that replays it. Exit code 1 if there is one.
`

const root = join(import.meta.dirname, '../..')
const findingsFile = 'soak.jsonl'
const minute = 60_000
/** Choice: the longest file takes a third of it on a quiet machine. */
const fileMaxMs = 45 * minute
const say = (line: string) => void process.stdout.write(`${line}\n`)
const ending = new AbortController()

/** The files that a new seed changes, or that measure: the others say the same each time. */
function listFiles(words: readonly string[]): string[] {
  const draws = /from '(?:fast-check|(?:\.\.?\/)+(?:kit\/)?(?:seeds|strength|check-property|scenario)\.ts)'/
  const files = [
    ...globSync('test/**/*.soak.ts', { cwd: root }),
    ...globSync('test/**/*.test.ts', { cwd: root }).filter((path) =>
      draws.test(readFileSync(join(root, path), 'utf8')),
    ),
  ]
  const chosen = files.filter((path) => words.length === 0 || words.some((word) => path.includes(word)))
  if (chosen.length === 0) throw new UsageError(`no file is named like ${words.join(' ')}; see --list`)
  return chosen.toSorted()
}

interface Turn {
  path: string
  seed: number
}

/** Every file in a new order again and again, each time with another seed. */
function* turns(files: readonly string[], random: () => number): Generator<Turn> {
  const below = (bound: number) => Math.floor(random() * bound)
  for (;;) {
    const waiting = [...files]
    while (waiting.length > 0) {
      const [path = ''] = waiting.splice(below(waiting.length), 1)
      // Seeds of kills that once found a fault take too long for `npm test`: every second turn takes one.
      const known = path.endsWith('crash/crash.test.ts') && random() < 0.5
      const seed = known ? regressions.crash[below(regressions.crash.length)] : undefined
      yield { path, seed: seed ?? 1 + below(999_999_999) }
    }
  }
}

async function soak(): Promise<number> {
  const flag = { type: 'boolean', default: false } as const
  const text = { type: 'string' } as const
  const { values, positionals } = parseArgs({
    options: { minutes: text, seed: text, list: flag, help: flag },
    allowPositionals: true,
  })
  if (values.help) {
    say(usage)
    return 0
  }
  const files = listFiles(positionals)
  if (values.list) {
    for (const path of files) say(path)
    return 0
  }
  const minutes = wholeNumber('minutes', values.minutes ?? '60')
  const given = values.seed === undefined ? null : wholeNumber('seed', values.seed)
  const plan = given === null ? turns(files, randomFrom(Date.now())) : replay(files, given)
  return runPlan(plan, performance.now() + minutes * minute)
}

function replay(files: readonly string[], seed: number): Turn[] {
  return files.map((path) => ({ path, seed }))
}

/** @returns the exit code */
async function runPlan(plan: Iterable<Turn>, endsAt: number): Promise<number> {
  const begun = performance.now()
  let [ran, found] = [0, 0]
  for (const turn of plan) {
    if (performance.now() > endsAt || ending.signal.aborted) break
    const failures = await play(turn)
    if (ending.signal.aborted) break
    ran += 1
    found += failures
  }
  say(`${found} findings in ${ran} runs, ${Math.round((performance.now() - begun) / minute)} min`)
  if (ending.signal.aborted) return 128 + constants.signals[ending.signal.reason as 'SIGINT' | 'SIGTERM']
  return found > 0 ? 1 : 0
}

/** Runs one file. @returns how many findings it made */
async function play({ path, seed }: Turn): Promise<number> {
  const run = await runVitest({
    tree: root,
    args: ['--mode=soak', path],
    environment: { SEED: String(seed) },
    limitMs: fileMaxMs,
    signal: ending.signal,
  })
  if (ending.signal.aborted) return 0
  const failures = failuresOf(run)
  const tests = run.files.flatMap(({ tests: all }) => all).filter(({ state }) => state === 'passed').length
  say(
    `${new Date().toISOString()} ${path} seed ${seed}: ${tests} passed, ${failures.length} findings, ` +
      `${Math.round(run.ms / 1_000)} s`,
  )
  for (const failure of failures) note(failure, { path, seed })
  return failures.length
}

function note({ title, message }: Failure, { path, seed }: Turn): void {
  const again = `npm run soak -- --seed ${seed} ${path}`
  const finding = { at: new Date().toISOString(), file: path, title, seed, message, replay: again }
  appendFileSync(join(root, findingsFile), `${JSON.stringify(finding)}\n`)
  say(`  ${title ?? 'outside of every test'}: ${message.split('\n')[0]}\n  again: ${again}`)
}

for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => ending.abort(name))
await runProgram(soak)
