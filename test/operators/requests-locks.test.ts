import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Batches, openBatches } from '../../src/database/batch.ts'
import { noteRequest, type RequestNote } from '../../src/operators/requests.ts'
import { makeMerchant, type TestMerchant } from '../access/merchants.ts'
import { fundedMerchant, openCollection, settleMany } from '../ledger/money.ts'
import {
  beginPayouts,
  createPayouts,
  depositItem,
  depositMany,
  payoutItem,
  settleDeposits,
  settlePayouts,
} from '../ledger/money-out.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

let db: TestDatabase
let pool: pg.Pool
let merchant: TestMerchant
/** Reads whole tables, as a plan over many requests may do it. */
let other: pg.Pool

beforeAll(async () => {
  db = await createTestDatabase()
  pool = db.database.pool
  merchant = await makeMerchant(pool)
  other = new pg.Pool({ ...db.connection, options: '-c enable_nestloop=off -c enable_mergejoin=off' })
  // A connection may still be closing when the database is dropped.
  other.on('error', () => {})
  other.on('connect', (client) => client.on('error', () => {}))
})
afterAll(async () => {
  await other.end()
  await db.drop()
})

function note(id: bigint, by: Batches, more: Partial<RequestNote> = {}): Promise<void> {
  const accepted = {
    attempt: 1,
    state: 'accepted',
    handle: {},
    nextCheckMs: 1_000,
    paymentUrl: null,
  } as const
  return noteRequest(by, { ...accepted, id, ...more })
}

test('notes and a settlement of the same requests wait for each other in one order', async () => {
  const open = await Promise.all(Array.from({ length: 24 }, () => openCollection(pool, merchant)))
  const before = await deadlocks()
  await Promise.all(
    open.flatMap(({ transactionId, requestId }, n) => [
      note(requestId, openBatches(n % 2 ? pool : other), { paymentUrl: 'https://pay/3' }),
      settleMany(n % 2 ? other : pool, [{ id: transactionId, to: 'success' }]),
    ]),
  )
  expect(await deadlocks()).toBe(before)
})

test.each(['deposit', 'payout'] as const)(
  'notes and settlements of many %ss never wait in a ring',
  async (kind) => {
    const funded = await fundedMerchant(pool, 1_000_000n)
    const before = await deadlocks()
    for (let round = 0; round < 6; round += 1) {
      const open = await openMany(kind, funded)
      const settle = kind === 'deposit' ? settleDeposits : settlePayouts
      const to = kind === 'deposit' ? 'success' : 'completed'
      const notes = openBatches(round % 2 ? pool : other)
      await Promise.all([
        settle(round % 2 ? other : pool, open.map(({ id }) => ({ id, to })).toReversed()),
        ...open.map(({ requestId }) => note(requestId, notes)),
        settle(
          pool,
          open.map(({ id }) => ({ id, to })),
        ),
        settle(
          other,
          open.map(({ id }) => ({ id, to: 'failed', source: 'initiate', attempt: 1 })).toReversed(),
        ),
      ])
    }
    expect(await deadlocks()).toBe(before)
  },
)

/** Disbursements under way, recorded one after another in another order than their rows lie. */
async function openMany(kind: 'deposit' | 'payout', payer: TestMerchant) {
  const count = Array.from({ length: 32 })
  if (kind === 'deposit') {
    const items = count.map(() => depositItem(payer))
    const made = await depositMany(pool, items)
    return made.map(({ transactionId, requestId }) => ({
      id: transactionId ?? 0n,
      requestId: requestId ?? 0n,
    }))
  }
  await createPayouts(
    pool,
    count.map(() => payoutItem(payer)),
  )
  const begun = await beginPayouts(pool)
  return begun.map(({ payoutId, requestId }) => ({ id: payoutId, requestId: requestId ?? 0n }))
}

test('a note that waits for a settlement holds nothing that the settlement needs', async () => {
  const { transactionId, requestId } = await openCollection(pool, merchant)
  const settling = await pool.connect()
  await settling.query('BEGIN')
  // Half of what settling locks, as it does: the transaction first.
  await settling.query('SELECT FROM transaction WHERE id = $1 FOR UPDATE', [transactionId])
  const noted = note(requestId, openBatches(pool), { paymentUrl: 'https://pay/4' })
  await waitForLockWaiter()
  await settling.query(`SET LOCAL lock_timeout = '300ms'`)
  await settling.query('SELECT FROM operator_request WHERE id = $1 FOR UPDATE', [requestId])
  await settling.query('COMMIT')
  settling.release()
  await expect(noted).resolves.toBeUndefined()
})

test('notes of several requests lock them in the order of their transactions', async () => {
  const open = await Promise.all(Array.from({ length: 3 }, () => openCollection(pool, merchant)))
  const [first, ...others] = open.toSorted((a, b) => Number(a.transactionId - b.transactionId))
  // The first one's row stands behind the others' now.
  await db.owner.query('UPDATE operator_request SET next_check_at = now() WHERE id = $1', [first?.requestId])
  await db.owner.query('ANALYZE operator_request')
  const holder = await pool.connect()
  await holder.query('BEGIN')
  await holder.query('SELECT FROM operator_request WHERE id = $1 FOR UPDATE', [first?.requestId])
  const many = openBatches(other)
  const noted = Promise.all(open.map(({ requestId }) => note(requestId, many)))
  await waitForLockWaiter()
  const { rowCount } = await holder.query(
    'SELECT FROM operator_request WHERE id = ANY ($1) FOR UPDATE SKIP LOCKED',
    [others.map(({ requestId }) => requestId)],
  )
  await holder.query('COMMIT')
  holder.release()
  await noted
  expect(rowCount).toBe(2)
})

async function waitForLockWaiter(): Promise<void> {
  for (let tries = 0; tries < 500; tries += 1) {
    const { rowCount } = await db.owner.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    )
    if (rowCount) return
  }
  throw new Error('nobody waits')
}

async function deadlocks(): Promise<bigint | undefined> {
  await db.owner.query('SELECT pg_stat_force_next_flush()')
  const { rows } = await db.owner.query<{ deadlocks: bigint }>(
    'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
  )
  return rows[0]?.deadlocks
}
