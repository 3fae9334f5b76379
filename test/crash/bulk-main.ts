import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openPool } from '../../src/database/client.ts'
import { exitWritten, runProgram, wholeNumber } from '../kit/command-line.ts'
import { randomFrom } from '../kit/random.ts'
import { crashBulk } from './bulk.ts'
import { startOperators } from './operator.ts'
import { startPostgres } from './postgres.ts'
import { startProxy } from './proxy.ts'

const usage = `Pays one batch by two processes of the service, and kills the one that sends:
each recipient is paid once.

  --recipients N  how many (10000)
  --kills N       kills -9 while it runs (5)
  --seed N        decides which connections are reset (by the clock)
  --short         with short waits for operators, as \`npm run crash\`
`
const memoryMaxMb = 400
const shownMax = 20
const say = (line: string) => void process.stdout.write(`${line}\n`)

async function runBulk(): Promise<number> {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean', default: false } as const
  const { values } = parseArgs({
    options: { recipients: text, kills: text, seed: text, short: flag, help: flag },
  })
  if (values.help) {
    say(usage)
    return 0
  }
  const recipients = wholeNumber('recipients', values.recipients ?? '10000')
  const kills = wholeNumber('kills', values.kills ?? '5')
  const seed = wholeNumber('seed', values.seed ?? `${1 + (Date.now() % 1_000_000)}`)
  const dir = mkdtempSync(join(tmpdir(), 'merchant-payments-bulk-'))
  // PostgreSQL runs under another account when this program runs as root.
  chmodSync(dir, 0o755)
  const postgres = await startPostgres(join(dir, 'pg'), () => {})
  const operators = await startOperators(join(dir, 'operators.jsonl'), seed)
  const proxy = await startProxy(postgres.socket, randomFrom(seed))
  const databaseUrl = `postgresql://${postgres.user}@127.0.0.1:${proxy.port}/payments`
  const owner = openPool({ connectionString: databaseUrl }, 4, null, () => {})
  try {
    const options = { databaseUrl, owner, operators, recipients, kills, isShort: values.short, say }
    const run = await crashBulk(options)
    const { violations, counts, paid, resends, atOnce, allAtOnce, ms, peakMb } = run
    const byStatus = Object.entries(counts).map(([status, count]) => `${count} ${status}`)
    say(
      `${recipients} recipients in ${Math.round(ms / 1_000)} s, ${kills} kills: ${byStatus.join(', ')}; ` +
        `${paid} XOF, ${resends} sent again; ${atOnce} at once, ${allAtOnce} with those; ` +
        `at most ${peakMb} MB in a process`,
    )
    for (const words of violations.slice(0, shownMax)) say(`  VIOLATED: ${words}`)
    if (peakMb >= memoryMaxMb) say(`  VIOLATED: ${memoryMaxMb} MB are the limit`)
    say(`${violations.length} violations (seed ${seed})`)
    return violations.length > 0 || peakMb >= memoryMaxMb ? 1 : 0
  } finally {
    await owner.end()
    await proxy.close()
    await operators.close()
    await postgres.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

await runProgram(runBulk)
await exitWritten()
