import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { crashBulk } from '../crash/bulk.ts'
import { startOperators } from '../crash/operator.ts'
import { createTestDatabase } from '../kit/database.ts'

// `npm run bulk-crash` is the same with 10,000 and five kills.

test('300 recipients, two processes, the sending one is killed: each recipient is paid once', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'merchant-payments-bulk-'))
  const operators = await startOperators(join(dir, 'operators.jsonl'), 1)
  const db = await createTestDatabase()
  try {
    const lines: string[] = []
    const run = await crashBulk({
      databaseUrl: db.url,
      owner: db.owner,
      operators,
      recipients: 300,
      kills: 1,
      isShort: true,
      say: (line) => lines.push(line),
    })
    const ms = Math.round(run.ms)
    process.stdout.write(`${lines.join()}; ${ms} ms, ${JSON.stringify(run.counts)}, ${run.atOnce} at once\n`)
    expect(run.violations).toEqual([])
    expect(run.counts['success']).toBeGreaterThan(200)
    expect(run.counts['failed']).toBeGreaterThan(20)
    // The rest neither succeeded nor failed: their outcome is unknown.
    expect(Number(/: (\d+) ended/.exec(lines[0] ?? '')?.[1])).toBeLessThan(300)
    expect(run.peakMb).toBeLessThan(400)
  } finally {
    await operators.close()
    await db.drop()
    rmSync(dir, { recursive: true, force: true })
  }
})
