import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { proveRecent } from '../../src/ledger/audit.ts'
import { verifyLedger } from '../../src/ledger/verify.ts'
import { borrow } from '../kit/client.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { balanceOf, fundedMerchant, fundMerchant, openCollection } from '../kit/money.ts'

/** Over large books the note sums as many rows as the proof read. */
test('a note of the proof that takes longer than an ordinary answer is waited for', async () => {
  const db = await createTestDatabase()
  const hasty = new pg.Pool({ ...db.connection, query_timeout: 3_000 })
  onTestFinished(async () => {
    await hasty.end()
    await db.drop()
  })
  await fundedMerchant(db.database.pool, 10_000n)
  await db.owner.query(`
    ALTER FUNCTION record_proof RENAME TO record_proof_quickly;
    CREATE FUNCTION record_proof(upto_entry bigint, upto_event bigint) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_sleep(4), record_proof_quickly(upto_entry, upto_event); END $$`)
  expect(await proveRecent({ pool: hasty })).toEqual({ problems: [], isEnd: true })
  const { rows } = await db.owner.query('SELECT ledger_entry_id FROM audit_point')
  expect(rows).toHaveLength(1)
})

/** Books with a merchant, a payment under way, and money that comes but is not committed. */
async function lateBooks(...late: readonly string[]) {
  const db = await createTestDatabase()
  onTestFinished(() => db.drop())
  const { pool } = db.database
  const merchant = await fundedMerchant(pool, 10_000n)
  const open = await openCollection(pool, merchant)
  await settleDown(db)
  const writer = await borrow(db.owner)
  await writer.query('BEGIN')
  await fundMerchant(writer, merchant.merchantId, 7n)
  for (const statement of late) await writer.query(statement, [merchant.merchantId, open.transactionId])
  const other = await fundedMerchant(pool, 5_000n)
  await openCollection(pool, other)
  await settleDown(db)
  const commit = async () => {
    await writer.query('COMMIT')
    writer.release()
    await pool.query('SELECT make_missing_deliveries(1000)')
  }
  const found = async () => (await verifyLedger(pool, { whole: false })).map(({ invariant }) => invariant)
  return { db, pool, merchant, commit, found }
}

/** Proves what is there as minutes of service do. */
async function settleDown({ database }: TestDatabase): Promise<void> {
  await database.pool.query('SELECT make_missing_deliveries(1000)')
  for (let turn = 0; turn < 4; turn += 1) expect(await proveRecent(database)).toMatchObject({ problems: [] })
}

test('the point waits for each transaction that still writes below it: late commits are proven', async () => {
  const { commit, found } = await lateBooks(`SELECT append_events(ARRAY[($1::int,
    'payment_failed', jsonb_build_object('transaction_id', $2::text, 'status', 'failed',
      'previous_status', 'pending'))::new_event], now())`)
  await commit()
  expect(await found()).toEqual(['events_report_every_change'])
})

test('a commit while the books are being proven is not taken for proven', async () => {
  const { db, pool, merchant, commit, found } = await lateBooks()
  const auditor = await borrow(pool)
  await auditor.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
  expect((await auditor.query('SELECT * FROM audit_ledger(false)')).rows).toEqual([])
  await commit()
  await auditor.query('SELECT record_proof(NULL, NULL)')
  await auditor.query('COMMIT')
  auditor.release()
  expect(await found()).toEqual([])
  await settleDown(db)
  const { rows } = await db.owner.query('SELECT available FROM audit_proven WHERE merchant_id = $1', [
    merchant.merchantId,
  ])
  expect(rows).toEqual([{ available: (await balanceOf(pool, merchant.merchantId)).available }])
})
