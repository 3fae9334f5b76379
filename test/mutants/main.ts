import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runProgram, wholeNumber } from '../kit/command-line.ts'
import { isTested, type Mutant, type TestedMutant } from './mutant.ts'
import { chooseMutants, mutants } from './mutants.ts'
import {
  type MutantFixture,
  judge,
  judgeUnplanted,
  openCopy,
  openFixture,
  type MutantVerdict,
} from './run.ts'

const usage = `Plants bugs in copies of the sources, one at a time: the test that is named for each must fail.
Words that follow choose the bugs whose name, files or test hold one of them.
The bugs that the crash harness finds are planted by \`npm run crash -- --planted\`.

  --list         prints the table, with the bugs of the crash harness, and runs nothing
  --parallel N   bugs at once (1)
  --all          runs every test of the named file and prints which fail
  --unplanted    only runs the named tests in the sources as they are

All took 17 minutes on two cores that had other work, one at a time. A run that hangs ends after 8 minutes.
`

const root = join(import.meta.dirname, '../..')
const say = (line: string) => void process.stdout.write(`${line}\n`)
const ending = new AbortController()

async function main(): Promise<number> {
  const flag = { type: 'boolean', default: false } as const
  const { values, positionals } = parseArgs({
    options: { list: flag, all: flag, unplanted: flag, help: flag, parallel: { type: 'string' } },
    allowPositionals: true,
  })
  if (values.help) say(usage)
  else if (values.list) for (const mutant of chooseMutants(mutants, positionals)) say(listed(mutant))
  else
    return check(chooseMutants(mutants.filter(isTested), positionals), {
      ...values,
      parallel: wholeNumber('parallel', values.parallel ?? '1'),
    })
  return 0
}

function listed({ name, edits, test, isFoundByCrashes }: Mutant): string {
  const files = new Set(edits.map(({ file }) => file))
  const finders = [
    ...(test ? [`${test.file}: ${test.name}`] : []),
    ...(isFoundByCrashes ? ['the crash harness'] : []),
  ]
  return `${name}\n  in ${[...files].join(', ')}, found by ${finders.join(', and by ')}`
}

interface Options {
  parallel: number
  all: boolean
  unplanted: boolean
}

/** @returns the exit code: 1 where a bug survives, or a named test fails without one */
async function check(chosen: readonly TestedMutant[], options: Options): Promise<number> {
  const begun = performance.now()
  const { fixture, close } = await openFixture(root, ending.signal)
  try {
    const problems = options.all ? [] : await judgeUnplanted(fixture, chosen)
    for (const problem of problems) say(`WITHOUT A BUG  ${problem}`)
    const seconds = () => Math.round((performance.now() - begun) / 1_000)
    if (!options.all) say(`${problems.length} problems without a bug, in ${seconds()} s`)
    if (options.unplanted) return problems.length === 0 ? 0 : 1
    const verdicts = await judgeAll(fixture, chosen, options)
    const found = verdicts.filter(({ kind }) => kind === 'killed').length
    say(`${found} of ${chosen.length} bugs are found, in ${seconds()} s`)
    return problems.length === 0 && found === chosen.length ? 0 : 1
  } finally {
    await close()
  }
}

async function judgeAll(fixture: MutantFixture, chosen: readonly TestedMutant[], { parallel, all }: Options) {
  const waiting = [...chosen]
  const verdicts: MutantVerdict[] = []
  const work = async () => {
    const { tree, remove } = openCopy(root)
    try {
      for (let next = waiting.shift(); next && !ending.signal.aborted; next = waiting.shift()) {
        const verdict = await judge(fixture, tree, next, all)
        verdicts.push(verdict)
        say(describe(verdict, all))
      }
    } finally {
      remove()
    }
  }
  await Promise.all(Array.from({ length: Math.min(parallel, chosen.length) }, work))
  return verdicts
}

function describe({ kind, mutant, failed, printed, ms }: MutantVerdict, all: boolean): string {
  const names = all ? failed : [mutant.test.name]
  const lines = [
    ...names.map((name) => `${mutant.test.file}: ${name}`),
    ...(kind === 'broken' ? [printed] : []),
  ]
  return [`${kind.padEnd(8)}  ${mutant.name} (${Math.round(ms / 1_000)} s)`, ...lines].join('\n    ')
}

for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => ending.abort(name))
await runProgram(main)
