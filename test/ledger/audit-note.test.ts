import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { auditLedger } from '../../src/ledger/audit.ts'
import { createTestDatabase } from '../support/database.ts'
import { fundedMerchant } from './money.ts'

/** Over large books the note sums as many rows as the proof read. */
test('a note of the proof that takes longer than an ordinary answer is waited for', async () => {
  const db = await createTestDatabase()
  const hasty = new pg.Pool({ ...db.connection, query_timeout: 500 })
  onTestFinished(async () => {
    await hasty.end()
    await db.drop()
  })
  await fundedMerchant(db.database.pool, 10_000n)
  await db.owner.query(`
    ALTER FUNCTION note_audit RENAME TO note_audit_quickly;
    CREATE FUNCTION note_audit(whole boolean) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_sleep(1), note_audit_quickly(whole); END $$`)
  expect(await auditLedger({ pool: hasty }, { whole: true })).toEqual({ problems: [], whole: true })
  const { rows } = await db.owner.query('SELECT movement_id FROM audit_point')
  expect(rows).toHaveLength(1)
})
