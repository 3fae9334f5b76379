import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type SharedStatements, openSharedStatements } from '../../src/database/shared-statements.ts'
import { recordRequest, type RequestRecord } from '../../src/requests/store.ts'
import { borrow } from '../kit/client.ts'
import { makeMerchant, type SignedInMerchant } from '../kit/merchants.ts'
import { fundedMerchant, openCollection, reverseMany, settleMany } from '../kit/money.ts'
import {
  beginPayouts,
  createPayouts,
  depositItem,
  depositMany,
  payoutItem,
  reverseDisbursements,
  settleDeposits,
  settlePayouts,
} from '../kit/money-out.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { eventually } from '../kit/eventually.ts'

let db: TestDatabase
let pool: pg.Pool
let merchant: SignedInMerchant
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

function note(id: bigint, by: SharedStatements, more: Partial<RequestRecord> = {}): Promise<void> {
  const accepted = {
    attempt: 1,
    state: 'accepted',
    handle: {},
    nextCheckMs: 1_000,
    paymentUrl: null,
  } as const
  return recordRequest(by, { ...accepted, id, ...more })
}

test('notes and a settlement of the same requests wait for each other in one order', async () => {
  const open = await Promise.all(Array.from({ length: 24 }, () => openCollection(pool, merchant)))
  const before = await deadlocks()
  await Promise.all(
    open.flatMap(({ transactionId, requestId }, n) => [
      note(requestId, openSharedStatements(n % 2 ? pool : other), { paymentUrl: 'https://pay/3' }),
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
      const notes = openSharedStatements(round % 2 ? pool : other)
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
async function openMany(kind: 'deposit' | 'payout', payer: SignedInMerchant) {
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
  const settling = await borrow(pool)
  await settling.query('BEGIN')
  // Half of what settling locks, as it does: the transaction first.
  await settling.query('SELECT FROM transaction WHERE id = $1 FOR UPDATE', [transactionId])
  const noted = note(requestId, openSharedStatements(pool), { paymentUrl: 'https://pay/4' })
  await db.untilWaiting()
  await settling.query(`SET LOCAL lock_timeout = '300ms'`)
  await settling.query('SELECT FROM operator_request WHERE id = $1 FOR UPDATE', [requestId])
  await settling.query('COMMIT')
  settling.release()
  await expect(noted).resolves.toBeUndefined()
})

test('notes that are shared wait for no request while they hold another', async () => {
  const made = await Promise.all(Array.from({ length: 4 }, () => openCollection(pool, merchant)))
  const open = made.toSorted((a, b) => Number(a.transactionId - b.transactionId))
  const holder = await holdRequest(open.at(-1)?.requestId)
  const many = openSharedStatements(other)
  const noted = open.map(({ requestId }) => note(requestId, many))
  await db.untilWaiting()
  // Nor does what the one waits for hold up the others.
  await eventually(async () => {
    const { rowCount } = await holder.query(
      'SELECT FROM operator_request WHERE id = ANY ($1) FOR UPDATE SKIP LOCKED',
      [open.map(({ requestId }) => requestId)],
    )
    expect(rowCount).toBe(open.length)
  })
  await holder.query('COMMIT')
  holder.release()
  await Promise.all(noted)
  const { rows } = await db.owner.query('SELECT DISTINCT state FROM operator_request WHERE id = ANY ($1)', [
    open.map(({ requestId }) => requestId),
  ])
  expect(rows).toEqual([{ state: 'accepted' }])
})

test.each(['collection', 'deposit', 'payout'] as const)(
  'taking back a %s waits for its request before it holds a balance',
  async (kind) => {
    const payer = await fundedMerchant(pool, 100_000n)
    const { requestId, takeBack } = await paid(kind, payer)
    const holder = await holdRequest(requestId)
    const taken = takeBack()
    await db.untilWaiting()
    const balance = 'SELECT FROM merchant_balance WHERE merchant_id = $1 FOR UPDATE NOWAIT'
    await holder.query(balance, [payer.merchantId])
    await holder.query('ROLLBACK')
    expect(await taken).toBe(true)
  },
)

async function paid(kind: 'collection' | 'deposit' | 'payout', payer: SignedInMerchant) {
  if (kind === 'collection') {
    const { transactionId: id, requestId } = await openCollection(pool, payer)
    await settleMany(pool, [{ id, to: 'success' }])
    return { requestId, takeBack: async () => (await reverseMany(pool, [id]))[0]?.moved }
  }
  const [it] = await openMany(kind, payer)
  if (!it) throw new Error('none is open')
  const isDeposit = kind === 'deposit'
  await (isDeposit ? settleDeposits : settlePayouts)(pool, [
    { id: it.id, to: isDeposit ? 'success' : 'completed' },
  ])
  const cause = `${isDeposit ? 'transaction' : 'payout'}:${it.id}`
  return { requestId: it.requestId, takeBack: async () => (await reverseDisbursements(pool, [cause]))[0] }
}

/** Holds the lock of a request until the test gives it back, or ends. */
async function holdRequest(id: bigint | undefined): Promise<pg.PoolClient> {
  const holder = await borrow(db.owner)
  await holder.query('BEGIN')
  await holder.query('SELECT FROM operator_request WHERE id = $1 FOR UPDATE', [id])
  return holder
}

async function deadlocks(): Promise<bigint | undefined> {
  await db.owner.query('SELECT pg_stat_force_next_flush()')
  const { rows } = await db.owner.query<{ deadlocks: bigint }>(
    'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
  )
  return rows[0]?.deadlocks
}
