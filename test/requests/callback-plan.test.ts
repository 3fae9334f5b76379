import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSharedStatements } from '../../src/database/shared-statements.ts'
import { openPool } from '../../src/database/client.ts'
import { serviceRole } from '../../src/database/migrate.ts'
import { recordCallback } from '../../src/requests/record-callback.ts'
import { makeMerchant } from '../kit/merchants.ts'
import { openCollection } from '../kit/money.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase()
})
afterAll(() => db.drop())

const rounds = 20

/** Reads of the table by one session: a single one, so that its statements reach their generic plans. */
async function readsOf(work: (pool: ReturnType<typeof openPool>) => Promise<void>) {
  const before = await readNumbers()
  const pool = openPool(db.connection, 1, serviceRole, () => {})
  await work(pool)
  await pool.query('SELECT pg_stat_force_next_flush()')
  await pool.end()
  const after = await readNumbers()
  return { scans: after.scans - before.scans, entries: after.entries - before.entries }
}

async function readNumbers(): Promise<{ scans: number; entries: number }> {
  const { rows } = await db.owner.query<{ scans: number; entries: number }>(
    `SELECT seq_scan::int AS scans, (SELECT sum(idx_tup_read)::int FROM pg_stat_user_indexes i
       WHERE i.relid = t.relid AND i.indexrelname <> 'operator_request_transaction_id_idx') AS entries
     FROM pg_stat_user_tables t WHERE relname = 'operator_request'`,
  )
  return rows[0] ?? { scans: -1, entries: -1 }
}

test.each(['requestId', 'correlationId'] as const)(
  'a callback finds its request by index alone on a new database, by its %s',
  async (by) => {
    const merchant = await makeMerchant(db.database.pool)
    const opened = await Promise.all(
      Array.from({ length: rounds }, () => openCollection(db.database.pool, merchant)),
    )
    const reads = await readsOf(async (pool) => {
      const services = { sharedStatements: openSharedStatements(pool), database: { pool } }
      for (const { requestId, correlationId } of opened) {
        const named = {
          requestId: null,
          correlationId: null,
          [by]: by === 'requestId' ? requestId : correlationId,
        }
        const kept = await recordCallback(services, {
          provider: 'OperatorA',
          dedupeKey: crypto.randomUUID(),
          body: '{}',
          says: 'settled',
          ...named,
        })
        expect(kept).toMatchObject({ isNew: true, requestId, claimed: null })
      }
    })
    expect(reads.scans).toBe(0)
    // The request is looked up, checked as a foreign key, and updated; the rest is dead versions of it.
    expect(reads.entries).toBeLessThanOrEqual(rounds * 6)
  },
)
