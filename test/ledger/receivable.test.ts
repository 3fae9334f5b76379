import { expect, test } from 'vitest'
import { proveRecent } from '../../src/ledger/audit.ts'
import { readBalance } from '../../src/ledger/balance.ts'
import { verifyLedger } from '../../src/ledger/verify.ts'
import { borrow } from '../kit/client.ts'
import type { SignedInMerchant } from '../kit/merchants.ts'
import { useTestDatabase } from '../kit/database.ts'
import { decideTogether } from '../kit/differences.ts'
import {
  fundedMerchant,
  fundMerchant,
  openCollection,
  problemsOf,
  reverseMany,
  settleMany,
} from '../kit/money.ts'
import {
  beginPayouts,
  cancelPayout,
  createPayouts,
  depositItem,
  depositMany,
  openDeposit,
  openPayout,
  payoutItem,
  settleDeposits,
  settlePayouts,
} from '../kit/money-out.ts'

const db = await useTestDatabase()
const { pool } = db.database

const holdingsOf = async (merchant: SignedInMerchant) => {
  const { available, reserved, receivable } = await readBalance(pool, merchant.merchantId)
  return [available, reserved, receivable]
}

/** A merchant that owes 5,000 francs: what it was paid is set aside for a payout, and taken back. */
async function debtor(begun = false): Promise<{ merchant: SignedInMerchant; payout: bigint }> {
  const merchant = await fundedMerchant(pool, 0n)
  const collected = await collection(merchant, 5_000n)
  const payout = await openPayout(pool, merchant, { amount: 5_000n })
  if (begun) await beginPayouts(pool)
  await reverseMany(pool, [collected])
  expect(await holdingsOf(merchant)).toEqual([0n, 5_000n, 5_000n])
  return { merchant, payout }
}

async function collection(merchant: SignedInMerchant, amount: bigint): Promise<bigint> {
  const { transactionId } = await openCollection(pool, merchant, { amount })
  await settleMany(pool, [{ id: transactionId, to: 'success' }])
  return transactionId
}

const fund = ({ merchantId }: SignedInMerchant, amount: bigint) => fundMerchant(pool, merchantId, amount)

async function recovered({ merchantId }: SignedInMerchant): Promise<bigint[]> {
  const { rows } = await pool.query<{ amount: bigint }>(
    `SELECT amount FROM ledger_entry WHERE merchant_id = $1 AND step = 'recover' AND debit = 'available'
       AND credit = 'suspense' AND origin LIKE 'receivable:%' ORDER BY id`,
    [merchantId],
  )
  return rows.map(({ amount }) => amount)
}

test('a debt is taken at once from all money that comes in, and no franc more', async () => {
  const { merchant } = await debtor()
  await collection(merchant, 2_000n)
  expect(await holdingsOf(merchant)).toEqual([0n, 5_000n, 3_000n])
  await fund(merchant, 500n)
  expect(await holdingsOf(merchant)).toEqual([0n, 5_000n, 2_500n])
  await fund(merchant, 4_000n)
  expect(await holdingsOf(merchant)).toEqual([1_500n, 5_000n, 0n])
  await fund(merchant, 4_000n)
  expect(await holdingsOf(merchant)).toEqual([5_500n, 5_000n, 0n])
  expect(await recovered(merchant)).toEqual([2_000n, 500n, 2_500n])
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})

test('the balance of a merchant that owes covers no payment out', async () => {
  const { merchant } = await debtor()
  await fund(merchant, 4_999n)
  expect(await depositMany(pool, [depositItem(merchant)])).toMatchObject([{ outcome: 'short' }])
  expect(await createPayouts(pool, [payoutItem(merchant)])).toMatchObject([{ outcome: 'short' }])
  expect(await holdingsOf(merchant)).toEqual([0n, 5_000n, 1n])
})

test('a payout that has not begun waits until the debt is paid, and enqueues no job', async () => {
  // The payouts of other tests are begun first.
  await beginPayouts(pool)
  const { merchant, payout } = await debtor()
  expect(await beginPayouts(pool)).toEqual([])
  const due = () => pool.query<{ n: number }>('SELECT enqueue_due_payouts() AS n')
  await db.owner.query('DELETE FROM graphile_worker._private_jobs')
  expect((await due()).rows).toEqual([{ n: 0 }])

  await collection(merchant, 5_000n)
  expect(await holdingsOf(merchant)).toEqual([0n, 5_000n, 0n])
  expect((await due()).rows).toEqual([{ n: 1 }])
  expect(await beginPayouts(pool)).toMatchObject([{ outcome: 'begun', payoutId: payout }])
})

test('money that comes free pays the debt too: cancelled, refused, credited, taken back again', async () => {
  const cancelled = await debtor()
  await cancelPayout(pool, cancelled.merchant, cancelled.payout)
  expect(await holdingsOf(cancelled.merchant)).toEqual([0n, 0n, 0n])

  const less = await debtor(true)
  await settlePayouts(pool, [{ id: less.payout, to: 'completed', amount: 3_000n }])
  expect(await holdingsOf(less.merchant)).toEqual([0n, 0n, 5_000n])
  await decideTogether(db.database, 'payout_id', less.payout, 'credited')
  expect(await holdingsOf(less.merchant)).toEqual([0n, 0n, 3_000n])
  const other = await collection(less.merchant, 4_000n)
  expect(await holdingsOf(less.merchant)).toEqual([1_000n, 0n, 0n])
  await reverseMany(pool, [other])
  expect(await holdingsOf(less.merchant)).toEqual([0n, 0n, 3_000n])

  const refused = await fundedMerchant(pool, 0n)
  const collected = await collection(refused, 5_000n)
  const { transactionId } = await openDeposit(pool, refused, { amount: 4_000n })
  await reverseMany(pool, [collected])
  await settleDeposits(pool, [{ id: transactionId, to: 'failed' }])
  expect(await holdingsOf(refused)).toEqual([0n, 0n, 0n])
  const ids = [cancelled, less].map(({ merchant }) => merchant.merchantId)
  expect(await problemsOf(pool, refused.merchantId, ...ids)).toEqual([])
})

test('several merchants that owe, in one statement: each pays its own debt', async () => {
  const debtors = [await debtor(), await debtor(), await debtor()]
  const open = await Promise.all(
    debtors.flatMap(({ merchant }) =>
      [3_000n, 4_000n].map((amount) => openCollection(pool, merchant, { amount })),
    ),
  )
  await settleMany(
    pool,
    open.map(({ transactionId: id }) => ({ id, to: 'success' })),
  )
  for (const { merchant } of debtors) expect(await holdingsOf(merchant)).toEqual([2_000n, 5_000n, 0n])
})

test('the audit sums the debt from its point on, and misses no franc of it', async () => {
  const { merchant } = await debtor()
  const proof = () => proveRecent(db.database)
  for (let n = 0; n < 4; n += 1) expect((await proof())?.problems).toEqual([])
  await fund(merchant, 1_000n)
  expect(await proof()).toEqual({ problems: [], isEnd: true })
  const client = await borrow(db.owner)
  await client.query('BEGIN; SET LOCAL session_replication_role = replica')
  await client.query('UPDATE merchant_balance SET receivable = receivable - 1 WHERE merchant_id = $1', [
    merchant.merchantId,
  ])
  for (const whole of [true, false]) {
    expect(await verifyLedger(client, { whole })).toMatchObject([
      { invariant: 'balances_equal_entries', merchantId: merchant.merchantId },
    ])
  }
  await client.query('ROLLBACK')
  client.release()
})
