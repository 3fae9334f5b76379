import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { crashBulk } from '../crash/bulk.ts'
import { startOperators } from '../crash/operator.ts'
import { createTestDatabase } from '../kit/database.ts'

// `npm run bulk-crash` is the same with 10,000 and five kills.

test('300 recipients, two processes, the one that sends is killed: everybody once', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'merchant-payments-bulk-'))
  const operators = await startOperators(join(dir, 'operators.jsonl'), 1)
  const db = await createTestDatabase()
  try {
    const said: string[] = []
    const storm = await crashBulk({
      databaseUrl: db.url,
      owner: db.owner,
      operators,
      recipients: 300,
      kills: 1,
      isShort: true,
      say: (line) => said.push(line),
    })
    const ms = Math.round(storm.ms)
    process.stdout.write(
      `${said.join()}; ${ms} ms, ${JSON.stringify(storm.counts)}, ${storm.atOnce} at once\n`,
    )
    expect(storm.violations).toEqual([])
    expect(storm.counts['success']).toBeGreaterThan(200)
    expect(storm.counts['failed']).toBeGreaterThan(20)
    // In between: nobody knows what became of those.
    expect(Number(/: (\d+) ended/.exec(said[0] ?? '')?.[1])).toBeLessThan(300)
    expect(storm.peakMb).toBeLessThan(400)
  } finally {
    await operators.close()
    await db.drop()
    rmSync(dir, { recursive: true, force: true })
  }
}, 90_000)
