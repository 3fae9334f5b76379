import { auditSliceEveryMs, auditSliceTurnMs } from '../../src/resources/jobs.ts'
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { openPool } from '../../src/database/client.ts'
import { startEmbedded } from '../../src/database/embedded.ts'
import { migrate, serviceRole } from '../../src/database/migrate.ts'
import { proveDueSlice, proveRecent, auditRowsMax } from '../../src/ledger/audit.ts'
import { databaseUrl } from '../kit/database-url.ts'
import { numberAboveZero, runProgram, wholeNumber } from '../kit/command-line.ts'
import { fillBooks, group, recordPoint } from './books.ts'

// A program: fills books of any size, and measures how long their proof takes.
//   npm run proof -- [--movements 10000000] [--merchants 1000] [--seconds 900]

function print(line: string): void {
  process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`)
}

async function timed<Result>(work: () => Promise<Result>): Promise<{ ms: number; result: Result }> {
  const begun = performance.now()
  const result = await work()
  return { ms: performance.now() - begun, result }
}

const spread = (all: readonly number[]) => {
  const sorted = all.toSorted((a, b) => a - b)
  const at = (share: number) =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(0)
  return `median ${at(0.5)}, p99 ${at(0.99)}, most ${at(1)} ms`
}

async function measure(url: string, options: { entries: number; merchants: number; seconds: number }) {
  // No time limits: filling takes minutes.
  const owner = new pg.Pool({ connectionString: url, max: 2 })
  const pool = openPool(url, 2, serviceRole, () => {})
  const { merchants } = options
  const groups = Math.ceil(options.entries / group.entries)
  const filled = await timed(() => fillBooks(owner, { groups, merchants, fast: true }))
  await recordPoint(owner)
  const { rows } = await owner.query('SELECT pg_size_pretty(pg_database_size(current_database())) AS size')
  const counted = `${groups * group.entries} movements, ${groups * group.events} events`
  print(`${counted}: ${rows[0].size}, filled in ${(filled.ms / 1_000).toFixed(0)} s`)

  // A minute at 100 payments a second, proven three times: the point follows two proofs later.
  const perMinute = 600
  for (let minute = 1; minute <= 3; minute += 1) {
    await fillBooks(owner, { first: groups + (minute - 1) * perMinute, groups: perMinute, merchants })
    const { ms, result } = await timed(() => proveRecent({ pool }))
    const found = result?.problems.length
    print(`minute ${minute}: ${perMinute * 10} payments proven in ${ms.toFixed(0)} ms, problems ${found}`)
  }
  const idle = await timed(() => proveRecent({ pool }))
  print(`a minute without payments: ${idle.ms.toFixed(0)} ms`)

  await owner.query(`UPDATE audit_point SET whole_proven_at = now() - interval '25 hours'`)
  await pass(pool, options.seconds)
  const status: number[] = []
  for (let turn = 0; turn < 50; turn += 1)
    status.push(
      (await timed(() => pool.query('SELECT proven_at, clock_timestamp() - proven_at FROM audit_point'))).ms,
    )
  print(`age of the proof, as GET /status reads it: ${spread(status)}`)
  await Promise.all([owner.end(), pool.end()])
}

/** A rolling pass without its pauses; says how long it takes with them. */
async function pass(pool: ReturnType<typeof openPool>, secondsMax: number): Promise<void> {
  const pace = { rows: auditRowsMax }
  const stages = new Map<string, number[]>()
  let [total, problems, at] = [0, 0, 'ledger_entry']
  for (;;) {
    const { ms, result } = await timed(() => proveDueSlice({ pool }, pace))
    if (!result) throw new Error('No pass is due.')
    stages.set(at, [...(stages.get(at) ?? []), ms])
    total += ms
    problems += result.problems.length
    if (result.stage !== at) print(`${at}: ${stages.get(at)?.length} slices, ${spread(stages.get(at) ?? [])}`)
    at = result.stage
    if (at === 'done' || total > secondsMax * 1_000) break
  }
  const all = [...stages.values()].flat()
  // Each turn proves until its time is over, at least one slice; then the job pauses.
  let [turns, used] = [0, 0]
  for (const ms of all) {
    used += ms
    if (used >= auditSliceTurnMs) [turns, used] = [turns + 1, 0]
  }
  const minutes = (total + turns * auditSliceEveryMs) / 60_000
  const what = at === 'done' ? 'whole pass' : `cut off at ${at}`
  print(`${what}: ${all.length} slices, ${spread(all)}, problems ${problems}`)
  print(
    `work ${(total / 1_000).toFixed(0)} s; in the background, with its pauses, ${minutes.toFixed(0)} minutes`,
  )
}

await runProgram(async () => {
  const { values } = parseArgs({
    options: {
      entries: { type: 'string', default: '10000000' },
      merchants: { type: 'string', default: '1000' },
      seconds: { type: 'string', default: '1800' },
    },
  })
  const options = {
    entries: wholeNumber('movements', values.entries),
    merchants: wholeNumber('merchants', values.merchants),
    seconds: numberAboveZero('seconds', values.seconds),
  }
  const dataDir = mkdtempSync(join(tmpdir(), 'merchant-payments-proof-'))
  const server = await startEmbedded({ dataDir, durable: false })
  try {
    const url = databaseUrl(server.connection())
    await migrate(url)
    await measure(url, options)
  } finally {
    await server.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
  return 0
})
