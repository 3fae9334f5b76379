import { parseArgs } from 'node:util'
import { bulk } from './bulk.ts'
import { collect } from './collect.ts'
import { deposit } from './deposit.ts'
import { filters } from './filters.ts'
import { life } from './life.ts'
import { openFixture } from './fixture.ts'
import { list } from './list.ts'
import { nested } from './nested.ts'
import { page } from './page.ts'
import { type BenchOptions, runSection, type SectionResult, type Workload } from './rounds.ts'
import { settle } from './settle.ts'
import { payouts } from './payouts.ts'
import { start } from './start.ts'
import { stats } from './stats.ts'
import { subscribe } from './subscribe.ts'
import { webhooks } from './webhooks.ts'
import { table } from './table.ts'
import { numberAboveZero, runProgram, UsageError, wholeNumber } from '../kit/command-line.ts'

const workloads: Readonly<Record<string, Workload>> = {
  collect,
  deposit,
  settle,
  list,
  filters,
  nested,
  page,
  payouts,
  bulk,
  start,
  stats,
  subscribe,
  webhooks,
}

const help = `How fast the service is, against the limit of each kind of work: both take turns in one run.

  npm run bench -- life | ${Object.keys(workloads).join(' | ')}

  --rounds N    turns of each (5; life: 1)
  --seconds S   length of a turn (3; life: 5)
  --rows N      rows of the largest table (1000000)
  --only WORDS  only the sections with these words in their title
  --rate N      life: so many payments per second, in place of clients that wait
  --tree PATH   life: another checkout, whose programs take turns with these
  --json        one document for machines`

await runProgram(async () => {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      rows: { type: 'string', default: '1000000' },
      only: { type: 'string', default: '' },
      rate: { type: 'string' },
      tree: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const [name, ...more] = positionals
  const isLife = name === 'life'
  const options = {
    rounds: wholeNumber('rounds', values.rounds ?? (isLife ? '1' : '5')),
    seconds: numberAboveZero('seconds', values.seconds ?? (isLife ? '5' : '3')),
    rows: wholeNumber('rows', values.rows),
    only: values.only,
    json: values.json,
  }
  if (name === undefined || values.help) {
    process.stdout.write(`${help}\n`)
    return values.help ? 0 : 2
  }
  if (more.length > 0) throw new UsageError(`${more.join(' ')}: one workload at a time`)
  if (isLife) {
    const rate = values.rate === undefined ? null : wholeNumber('rate', values.rate)
    await life({ ...options, rate, tree: values.tree ?? null }, say)
    return 0
  }
  const workload = Object.hasOwn(workloads, name) ? workloads[name] : undefined
  if (!workload)
    throw new UsageError(`${name}: no such workload; there are: life, ${Object.keys(workloads).join(', ')}`)
  await run(name, workload, options)
  return 0
})

async function run(
  name: string,
  open: Workload,
  { only, json, ...options }: BenchOptions & { only: string; json: boolean },
): Promise<void> {
  const fixture = await openFixture()
  try {
    say('preparing')
    const bench = await open(fixture, options)
    try {
      const results: SectionResult[] = []
      const sections = bench.sections.filter(({ title }) => title.includes(only))
      if (sections.length === 0) {
        const titles = bench.sections.map(({ title }) => title).join(', ')
        throw new UsageError(`--only ${only}: no such section; there are: ${titles}`)
      }
      for (const section of sections) {
        const result = await runSection(section, fixture, options, say)
        results.push(result)
        if (!json) write(`${table(result)}\n\n`)
      }
      if (json) write(`${JSON.stringify({ workload: name, ...options, sections: results }, null, 2)}\n`)
      else write(`${[...bench.notes, roundsWords(options)].join('\n')}\n`)
    } finally {
      await bench.close()
    }
  } finally {
    await fixture.close()
  }
}

function roundsWords({ rounds, seconds }: { rounds: number; seconds: number }): string {
  const turns = `Medians of ${rounds} rounds of ${seconds} s; ratios are paired by round`
  return `${turns}; µs are processor time per operation.`
}

function write(text: string): void {
  clear()
  process.stdout.write(text)
}

/** Prints the current step on a line that the next result replaces. */
function say(words: string): void {
  if (!process.stderr.isTTY) return
  clear()
  process.stderr.write(words)
}

function clear(): void {
  if (process.stderr.isTTY) process.stderr.write('\r\u001B[K')
}
