import { afterAll, beforeAll, expect, test } from 'vitest'
import { auditLedger } from '../../src/ledger/audit.ts'
import { type Invariant, verifyLedger } from '../../src/ledger/verify.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type BooksOut, keepBooksOut, plantsOut } from './plants-out.ts'

let db: TestDatabase
let old: BooksOut
let books: BooksOut
beforeAll(async () => {
  db = await createTestDatabase()
  old = await keepBooksOut(db.database.pool, db.owner)
  // Proven, and the point moves on to its end.
  for (let turn = 0; turn < 3; turn += 1) await auditLedger(db.database, { whole: false })
  books = await keepBooksOut(db.database.pool, db.owner)
})
afterAll(() => db.drop())

async function found(whole: boolean, statements: string[]): Promise<Set<Invariant>> {
  const client = await db.owner.connect()
  try {
    await client.query('BEGIN')
    await client.query('SET LOCAL session_replication_role = replica')
    for (const statement of statements) expect((await client.query(statement)).rowCount).not.toBe(0)
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

test.each(plantsOut)('the audit names %s', async (_what, name, plant) => {
  // The counts are held against every row, once a day.
  for (const whole of name === 'payouts_are_counted' ? [true] : [false, true])
    expect(await found(whole, plant(books))).toContain(name)
})

test('what is old is found by the whole proof', async () => {
  for (const [, name, plant] of plantsOut) {
    expect(await found(true, plant(old))).toContain(name)
  }
})
