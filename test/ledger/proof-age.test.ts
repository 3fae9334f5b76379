import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { proveRecent } from '../../src/ledger/audit.ts'
import { haltPaymentsOut, resumePaymentsOut } from '../../src/ledger/payments-out.ts'
import { healthOfProofAge, watchProofAge } from '../../src/ledger/proof-age.ts'
import type { Log } from '../../src/telemetry/log.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'

const minute = 60_000
let db: TestDatabase
beforeAll(async () => void (db = await createTestDatabase()))
afterAll(() => db.drop())
beforeEach(async () => {
  await resumePaymentsOut(db.owner, 'the next test')
  await db.owner.query('DELETE FROM payments_out_halt')
  await proveRecent(db.database)
})

const provenAgo = (minutes: number) =>
  db.owner.query(`UPDATE audit_point SET proven_at = now() - $1 * interval '1 minute'`, [minutes])

/** One watch, as each minute. @returns what it logged */
async function watch(haltAfterMs = 30 * minute, upMs = 1e9): Promise<string[]> {
  const lines: string[] = []
  const log = {
    error: (_detail: object, words: string) => lines.push(words),
    warn: (words: string) => lines.push(words),
  } as unknown as Log
  await watchProofAge({ database: db.database, log }, { haltAfterMs, upMs })
  return lines
}

async function halts() {
  const { rows } = await db.owner.query<{ reason: string; open: boolean }>(
    'SELECT reason, lifted_at IS NULL AS open FROM payments_out_halt ORDER BY id',
  )
  return rows
}

const overdue = 'alarm: the ledger was not checked for more than five minutes'
const halted = 'alarm: payments out are halted until the ledger is checked again'
const lifted = 'payments out are possible again: the ledger was checked'

test('five minutes without a proof raise an alarm each minute, and halt nothing', async () => {
  await provenAgo(4.9)
  expect(await watch()).toEqual([])
  await provenAgo(5.1)
  expect([await watch(), await watch()]).toEqual([[overdue], [overdue]])
  expect(await halts()).toEqual([])
})

test('half an hour without a proof halts payments out once, until the books are proven', async () => {
  await provenAgo(31)
  expect(await watch()).toEqual([overdue, halted])
  expect(await watch()).toEqual([overdue])
  expect(await halts()).toEqual([{ reason: 'the books were last proven 31 minutes ago', open: true }])
  expect(await proveRecent(db.database)).toEqual({ problems: [], isEnd: true })
  expect(await watch()).toEqual([lifted])
  expect(await halts()).toEqual([{ reason: 'the books were last proven 31 minutes ago', open: false }])
})

test('a proof that fails counts as none', async () => {
  await provenAgo(31)
  await watch()
  await expect(proveRecent(db.database, { rows: 1_000 }, { timeoutMs: 1 })).rejects.toMatchObject({
    cause: { code: '57014' },
  })
  expect(await watch()).toEqual([overdue])
  expect(await halts()).toMatchObject([{ open: true }])
})

test('a halt for another reason stays, in either order', async () => {
  await provenAgo(31)
  await watch()
  expect(await haltPaymentsOut(db.owner, 'a person')).toBe(true)
  await proveRecent(db.database)
  expect(await watch()).toEqual([lifted])
  expect(await halts()).toMatchObject([{ open: false }, { reason: 'a person', open: true }])
  await provenAgo(31)
  expect(await watch()).toEqual([overdue, halted])
  await proveRecent(db.database)
  await watch()
  expect((await halts()).filter(({ open }) => open)).toEqual([{ reason: 'a person', open: true }])
})

test('a process does not count the time before it began', async () => {
  await provenAgo(5_000)
  expect(await watch(30 * minute, 4 * minute)).toEqual([])
  expect(await watch(30 * minute, 29 * minute)).toEqual([overdue])
  expect(await watch(30 * minute, 31 * minute)).toEqual([overdue, halted])
  // Nor does it lift what another one, which has run longer, halted.
  expect(await watch(30 * minute, 1 * minute)).toEqual([])
  expect(await halts()).toMatchObject([{ open: true }])
})

test('books that were never proven are unproven since the process began', async () => {
  await db.owner.query('DELETE FROM audit_point')
  expect(await watch(30 * minute, 4 * minute)).toEqual([])
  expect(await watch(30 * minute, 31 * minute)).toEqual([overdue, halted])
})

test('where it is switched off nothing is halted, and an earlier halt is lifted', async () => {
  await provenAgo(5_000)
  await watch()
  expect(await watch(0)).toEqual([overdue, lifted])
  expect(await halts()).toMatchObject([{ open: false }])
  expect(await watch(0)).toEqual([overdue])
})

test.each<[string, number | null, number, number]>([
  ['operational', 4 * minute, 1e9, 30 * minute],
  ['degraded', 6 * minute, 1e9, 30 * minute],
  ['down', 31 * minute, 0, 30 * minute],
  ['degraded', 31 * minute, 1e9, 0],
  ['operational', null, 1_000, 30 * minute],
  ['degraded', null, 6 * minute, 30 * minute],
])('the status is %s at an age of %s ms', (health, ageMs, upMs, haltAfterMs) => {
  expect(healthOfProofAge(ageMs, { upMs, haltAfterMs })).toBe(health)
})
