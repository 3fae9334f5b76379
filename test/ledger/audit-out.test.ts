import type { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { proveRecent } from '../../src/ledger/audit.ts'
import { type Invariant, verifyLedger } from '../../src/ledger/verify.ts'
import { withClient } from '../kit/client.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { provenBySlices } from '../kit/passes.ts'
import { keepBooksOfBatches, corruptionsOfBatches } from './corruptions-batches.ts'
import { keepBooksOfLinks, corruptionsOfLinks } from './corruptions-links.ts'
import { keepBooksOut, corruptionsOut } from './corruptions-out.ts'

const keepBooks = async (pool: Pool, owner: Pool) => ({
  out: await keepBooksOut(pool, owner),
  batches: await keepBooksOfBatches(pool, owner),
  links: await keepBooksOfLinks(pool, owner),
})
type Books = Awaited<ReturnType<typeof keepBooks>>
type Corruption = readonly [what: string, names: Invariant, corruption: (books: Books) => string[]]
const corruptions: readonly Corruption[] = [
  ...corruptionsOut.map(([what, name, corruption]): Corruption => [what, name, ({ out }) => corruption(out)]),
  ...corruptionsOfBatches.map(
    ([what, name, corruption]): Corruption => [what, name, ({ batches }) => corruption(batches)],
  ),
  ...corruptionsOfLinks.map(
    ([what, name, corruption]): Corruption => [what, name, ({ links }) => corruption(links)],
  ),
]

let db: TestDatabase
let old: Books
let books: Books
beforeAll(async () => {
  db = await createTestDatabase()
  old = await keepBooks(db.database.pool, db.owner)
  // Proven, and the point moves on to its end.
  for (let turn = 0; turn < 3; turn += 1) await proveRecent(db.database)
  books = await keepBooks(db.database.pool, db.owner)
})
afterAll(() => db.drop())

function found(whole: boolean | 'slices', statements: string[]): Promise<Set<Invariant>> {
  return withClient(db.owner, async (client) => {
    await client.query('BEGIN')
    await client.query('SET LOCAL session_replication_role = replica')
    for (const statement of statements) expect((await client.query(statement)).rowCount).not.toBe(0)
    if (whole === 'slices') return provenBySlices(client, 1_000)
    return new Set((await verifyLedger(client, { whole })).map(({ invariant }) => invariant))
  })
}

test('sound books break no invariant, whole or since the point', async () => {
  expect((await db.owner.query('SELECT ledger_entry_id > 0 AS moved FROM audit_point')).rows).toEqual([
    { moved: true },
  ])
  expect([await found(true, []), await found(false, [])]).toEqual([new Set(), new Set()])
})

/** Counted by the rolling pass alone. */
const foundByThePass = ['a payout that is not counted']

test.each(corruptions)('the audit names %s', async (what, name, corruption) => {
  for (const whole of foundByThePass.includes(what) ? [true] : [false, true])
    expect(await found(whole, corruption(books))).toContain(name)
})

test('sound books break nothing in the whole proof, slice by slice', async () => {
  expect(await found('slices', [])).toEqual(new Set())
})

test.each(corruptions)('the whole proof names an old %s, slice by slice', async (_, name, corruption) => {
  expect(await found('slices', corruption(old))).toContain(name)
})
