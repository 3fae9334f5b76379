import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { borrow } from '../kit/client.ts'
import type { SignedInMerchant } from '../kit/merchants.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { fundedMerchant, openCollection, problemsOf, reverseMany, settleMany } from '../kit/money.ts'
import {
  beginPayouts,
  cancelAllPayouts,
  cancelPayout,
  openDeposit,
  openPayout,
  settleDeposits,
  settlePayouts,
} from '../kit/money-out.ts'

let db: TestDatabase
let pool: pg.Pool
let merchant: SignedInMerchant
beforeAll(async () => {
  db = await createTestDatabase()
  pool = db.database.pool
})
beforeEach(async () => {
  merchant = await fundedMerchant(pool, 10_000n)
})
afterAll(() => db.drop())

/** A transaction under way, in which others are in each other's way. */
async function underWay(): Promise<pg.PoolClient> {
  onTestFinished(() => cancelAllPayouts(pool))
  const client = await borrow(db.owner)
  await client.query('BEGIN')
  return client
}

test('a caller who cancels a payout that is being begun waits, and learns that it has begun', async () => {
  const id = await openPayout(pool, merchant)
  const first = await underWay()
  expect(await beginPayouts(first)).toMatchObject([{ payoutId: id }])
  const cancelled = cancelPayout(pool, merchant, id)
  await db.untilWaiting()
  await first.query('COMMIT')
  expect(await cancelled).toEqual({ moved: false, status: 'processing' })
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})

test('a process that begins payouts skips one that is being cancelled, and does not wait', async () => {
  const [cancelled, other] = [await openPayout(pool, merchant), await fundedMerchant(pool, 5_000n)]
  const id = await openPayout(pool, other)
  const first = await underWay()
  await first.query('SELECT FROM payout WHERE id = $1 FOR UPDATE', [cancelled])
  expect(await beginPayouts(pool)).toMatchObject([{ payoutId: id }])
  expect(await cancelPayout(first, merchant, cancelled)).toMatchObject({ moved: true })
  await first.query('COMMIT')
  expect(await problemsOf(pool, merchant.merchantId, other.merchantId)).toEqual([])
})

test('a due payout of a deactivated merchant takes no turn of another merchant', async () => {
  await openPayout(pool, merchant)
  const other = await fundedMerchant(pool, 5_000n)
  await pool.query(`UPDATE merchant SET status = 'inactive' WHERE id = $1`, [merchant.merchantId])
  const id = await openPayout(pool, other)
  expect(await beginPayouts(pool, 'OperatorA', 1)).toMatchObject([{ payoutId: id }])
})

test('a refund that ends and the reversal of its collection wait in one order', async () => {
  const { transactionId: original } = await openCollection(pool, merchant)
  await settleMany(pool, [{ id: original, to: 'success' }])
  const refund = { refundOf: original, amount: 5_000n }
  const { transactionId: id } = await openDeposit(pool, merchant, refund)
  const first = await underWay()
  await first.query('SELECT FROM transaction WHERE id = $1 FOR UPDATE', [original])
  const settled = settleDeposits(pool, [{ id, to: 'success' }])
  await db.untilWaiting()
  expect(await reverseMany(first, [original])).toMatchObject([{ moved: true }])
  await first.query('COMMIT')
  expect(await settled).toEqual([{ moved: true, status: 'success' }])
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})

test.each(['deposit', 'payout'] as const)(
  'the refusal of a send waits for the process that sends the %s again, and ends nothing',
  async (subject) => {
    const isDeposit = subject === 'deposit'
    const id = isDeposit
      ? (await openDeposit(pool, merchant)).transactionId
      : await openPayout(pool, merchant)
    if (!isDeposit) await beginPayouts(pool)
    const first = await underWay()
    const column = isDeposit ? 'transaction_id' : 'payout_id'
    await first.query(`UPDATE operator_request SET attempt = attempt + 1 WHERE ${column} = $1`, [id])
    const settle = isDeposit ? settleDeposits : settlePayouts
    const ended = settle(pool, [{ id, to: 'failed', source: 'initiate', attempt: 1 }])
    await db.untilWaiting()
    await first.query('COMMIT')
    expect(await ended).toEqual([{ moved: false, status: 'processing' }])
    expect(await settle(pool, [{ id, to: 'failed', source: 'initiate', attempt: 2 }])).toMatchObject([
      { moved: true },
    ])
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  },
)
