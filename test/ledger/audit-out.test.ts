import type { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { proveRecent } from '../../src/ledger/audit.ts'
import { type Invariant, verifyLedger } from '../../src/ledger/verify.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { provenBySlices } from '../kit/passes.ts'
import { keepBooksOfBatches, plantsOfBatches } from './plants-batches.ts'
import { keepBooksOfLinks, plantsOfLinks } from './plants-links.ts'
import { keepBooksOut, plantsOut } from './plants-out.ts'

const keepBooks = async (pool: Pool, owner: Pool) => ({
  out: await keepBooksOut(pool, owner),
  batches: await keepBooksOfBatches(pool, owner),
  links: await keepBooksOfLinks(pool, owner),
})
type Books = Awaited<ReturnType<typeof keepBooks>>
type Plant = readonly [what: string, names: Invariant, plant: (books: Books) => string[]]
const plants: readonly Plant[] = [
  ...plantsOut.map(([what, name, plant]): Plant => [what, name, ({ out }) => plant(out)]),
  ...plantsOfBatches.map(([what, name, plant]): Plant => [what, name, ({ batches }) => plant(batches)]),
  ...plantsOfLinks.map(([what, name, plant]): Plant => [what, name, ({ links }) => plant(links)]),
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

async function found(whole: boolean | 'slices', statements: string[]): Promise<Set<Invariant>> {
  const client = await db.owner.connect()
  try {
    await client.query('BEGIN')
    await client.query('SET LOCAL session_replication_role = replica')
    for (const statement of statements) expect((await client.query(statement)).rowCount).not.toBe(0)
    if (whole === 'slices') return await provenBySlices(client, 1_000)
    return new Set((await verifyLedger(client, { whole })).map(({ invariant }) => invariant))
  } finally {
    await client.query('ROLLBACK')
    client.release()
  }
}

test('sound books break none, whole or since the point', async () => {
  expect((await db.owner.query('SELECT movement_id > 0 AS moved FROM audit_point')).rows).toEqual([
    { moved: true },
  ])
  expect([await found(true, []), await found(false, [])]).toEqual([new Set(), new Set()])
})

/** Counted by the rolling pass alone. */
const foundByThePass = ['a payout that is not counted']

test.each(plants)('the audit names %s', async (what, name, plant) => {
  for (const whole of foundByThePass.includes(what) ? [true] : [false, true])
    expect(await found(whole, plant(books))).toContain(name)
})

test('what is old is found by the whole proof, slice by slice', async () => {
  expect(await found('slices', [])).toEqual(new Set())
  for (const [, name, plant] of plants) {
    expect(await found('slices', plant(old))).toContain(name)
  }
})
