import type pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { borrow } from '../kit/client.ts'
import type { SignedInMerchant } from '../kit/merchants.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { fundedMerchant, openCollection, reverseMany, settleMany } from '../kit/money.ts'
import {
  beginPayouts,
  cancelPayout,
  createPayouts,
  depositItem,
  depositMany,
  payoutItem,
  reverseDisbursements,
  settleDeposits,
  settlePayouts,
} from '../kit/money-out.ts'

const many = 20_000

let db: TestDatabase
let merchant: SignedInMerchant
beforeEach(async () => {
  db = await createTestDatabase()
  merchant = await fundedMerchant(db.database.pool, 1_000_000n)
})
afterEach(() => db.drop())

/** Every verb of money out once, the way of a deposit, a refund and three payouts. */
async function goAllWays(client: pg.PoolClient): Promise<void> {
  const { transactionId: original } = await openCollection(client as unknown as pg.Pool, merchant)
  await settleMany(client, [{ id: original, to: 'success' }])
  const refund = depositItem(merchant, { refundOf: original, amount: 5_000n })
  const deposits = await depositMany(client, [depositItem(merchant), depositItem(merchant), refund])
  const ids = deposits.map(({ transactionId }) => transactionId ?? 0n)
  const ends = ids.map((id, n) => ({ id, to: n === 1 ? 'failed' : 'success' }))
  expect((await settleDeposits(client, ends)).every(({ moved }) => moved)).toBe(true)
  const payouts = await createPayouts(client, [
    payoutItem(merchant),
    payoutItem(merchant),
    payoutItem(merchant),
  ])
  const [first = 0n, second = 0n, third = 0n] = payouts.map(({ payoutId }) => payoutId ?? 0n)
  expect(await cancelPayout(client, merchant, third)).toMatchObject({ moved: true })
  expect(await beginPayouts(client)).toHaveLength(2)
  const paid = [
    { id: first, to: 'completed' },
    { id: second, to: 'failed' },
  ]
  expect((await settlePayouts(client, paid)).every(({ moved }) => moved)).toBe(true)
  const back = await reverseDisbursements(client, [`transaction:${ids[0]}`, `payout:${first}`])
  expect(back).toEqual([true, true])
  expect(await reverseMany(client, [original])).toMatchObject([{ moved: true }])
  await client.query('SELECT expire_approvals(10)')
}

/** How many rows of each table this reads. */
async function readsOf(client: pg.PoolClient, work: () => Promise<void>): Promise<Map<string, number>> {
  const readSoFar = async () => {
    const { rows } = await client.query<{ name: string; read: bigint }>(
      `SELECT relname AS name, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) AS read
       FROM pg_stat_xact_user_tables WHERE schemaname = 'public'`,
    )
    return new Map(rows.map(({ name, read }) => [name, Number(read)]))
  }
  await client.query('BEGIN')
  const before = await readSoFar()
  await work()
  const after = await readSoFar()
  await client.query('ROLLBACK')
  return new Map([...after].map(([name, read]) => [name, read - (before.get(name) ?? 0)]))
}

// Autovacuum may analyse a table at any moment, also when all of its rows are dead: it then looks empty.
const analysed = {
  'that were never analysed': [],
  'that were analysed nearly empty': [0],
  'that were analysed full of dead rows': [2],
  'that were analysed full of dead rows, after their plans were kept': [7],
}
test.each(Object.entries(analysed))(
  `of ${many} rows of tables %s a session reads no more than before there were any`,
  async (kind, sessionsBefore: number[]) => {
    const client = await borrow(db.database.pool)
    // Plans are made here, and kept.
    for (let n = 0; n < 7; n += 1) {
      if (sessionsBefore.includes(n)) await db.owner.query('ANALYZE')
      await readsOf(client, () => goAllWays(client))
    }
    if (sessionsBefore.includes(7)) await db.owner.query('ANALYZE')
    const before = await readsOf(client, () => goAllWays(client))
    await fill(kind)
    const after = await readsOf(client, () => goAllWays(client))
    client.release(true)
    expect(before.get('merchant_balance')).toBeGreaterThan(5)
    expect([...after].filter(([name, read]) => read > (before.get(name) ?? 0) + 100)).toEqual([])
  },
)

test('the first due payout of many shows that work is due', async () => {
  const client = await borrow(db.database.pool)
  await db.owner.query(
    `INSERT INTO payout (merchant_id, payment_method, destination_phone, amount, status, reference,
       scheduled_at, send_at, approval, maker, request_data, created_at)
     SELECT $1::int, 'OperatorD', '+22370000001', 1000, 'pending', n, now(), now(), 'not_required',
       'api_key:1', '{}', now()
     FROM generate_series(1, 200) n`,
    [merchant.merchantId],
  )
  const reads = await readsOf(client, async () => {
    const { rows } = await client.query('SELECT enqueue_due_payouts() AS enqueued')
    expect(rows).toEqual([{ enqueued: 1 }])
  })
  client.release(true)
  expect(reads.get('payout')).toBeLessThan(20)
})

/** Finished deposits and payouts of the same merchant, as if written by a session of long ago. */
async function fill(kind: string): Promise<void> {
  const client = await borrow(db.owner)
  await client.query('BEGIN; SET LOCAL session_replication_role = replica')
  const statements = [
    `INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
       reference, request_data, created_at)
     SELECT $1::int, 'deposit', 'OperatorA', '+22370000001', 1000, 'failed', $2 || n, '{}', now()
     FROM generate_series(1, ${many}) n`,
    `INSERT INTO payout (merchant_id, payment_method, destination_phone, amount, status, reference,
       send_at, approval,
       maker, request_data, created_at)
     SELECT $1::int, 'OperatorA', '+22370000001', 1000, 'failed', $2 || n, now(), 'not_required',
       'api_key:1', '{}',
       now()
     FROM generate_series(1, ${many}) n`,
    `INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount,
       phone, state,
       fence_until, created_at)
     SELECT $1::int, t.id, 'OperatorA', 'disburse', gen_random_uuid(), 1000, t.customer_phone, 'refused',
       now(), now()
     FROM transaction t WHERE t.reference LIKE $2 || '%'`,
    `INSERT INTO operator_request (merchant_id, payout_id, provider, kind, correlation_id, amount, phone,
       state,
       fence_until, created_at)
     SELECT $1::int, p.id, 'OperatorA', 'disburse', gen_random_uuid(), 1000, p.destination_phone,
       'refused', now(), now()
     FROM payout p WHERE p.reference LIKE $2 || '%'`,
    `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
     SELECT $1::int, $2 || n, 'fund', 'funding', 'available', 1, now() FROM generate_series(1, ${many}) n`,
  ]
  for (const statement of statements) await client.query(statement, [merchant.merchantId, `${kind} `])
  await client.query('COMMIT')
  client.release()
}
