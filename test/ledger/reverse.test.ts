import { expect, test } from 'vitest'
import { transactionStates } from '../../src/resources/transactions/states.ts'
import { makeMerchant, type SignedInMerchant } from '../kit/merchants.ts'
import { createPayouts, openPayout, payoutItem } from '../kit/money-out.ts'
import { useTestDatabase } from '../kit/database.ts'
import { balanceOf, eventTypes, openCollection, problemsOf, reverseMany, settleMany } from '../kit/money.ts'

const db = await useTestDatabase()
const { pool } = db.database

async function paid(merchant: SignedInMerchant, amount = 5_000n): Promise<bigint> {
  const { transactionId } = await openCollection(pool, merchant, { amount })
  await settleMany(pool, [{ id: transactionId, to: 'success' }])
  return transactionId
}

/** Sets money aside, as a payout does. */
const spend = (merchant: SignedInMerchant, amount: bigint) => openPayout(pool, merchant, { amount })

async function entriesOf(id: bigint): Promise<string[]> {
  const { rows } = await db.owner.query<{ line: string }>(
    `SELECT step || ' ' || debit || ' > ' || credit || ' ' || amount AS line FROM ledger_entry
     WHERE origin = 'transaction:' || $1 AND step <> 'credit' ORDER BY id`,
    [id],
  )
  return rows.map(({ line }) => line)
}

test('the money goes back the way that it came, with one event, once', async () => {
  const merchant = await makeMerchant(pool)
  const id = await paid(merchant)
  const answers = await Promise.all(Array.from({ length: 20 }, () => reverseMany(pool, [id])))
  expect(answers.flat().filter(({ moved }) => moved)).toEqual([
    { moved: true, status: 'reversed', shortfall: 0n },
  ])
  expect(await entriesOf(id)).toEqual(['reverse available > clearing_operator_a 5000'])
  expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 0n, reserved: 0n })
  expect(await eventTypes(pool, merchant.merchantId)).toEqual([
    'payment_pending',
    'payment_received',
    'payment_reversed',
  ])
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})

test('money that the merchant has spent becomes its debt, never a balance below zero', async () => {
  const merchant = await makeMerchant(pool)
  const id = await paid(merchant)
  await spend(merchant, 4_000n)
  expect(await reverseMany(pool, [id])).toEqual([{ moved: true, status: 'reversed', shortfall: 4_000n }])
  expect(await entriesOf(id)).toEqual([
    'reverse available > clearing_operator_a 1000',
    'shortfall suspense > clearing_operator_a 4000',
  ])
  expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 0n, reserved: 4_000n })
  const { rows } = await pool.query(
    `SELECT data->'amount' AS amount, data->'shortfall' AS shortfall FROM event
     WHERE merchant_id = $1 AND type = 'payment_reversed'`,
    [merchant.merchantId],
  )
  expect(rows).toEqual([{ amount: 5_000, shortfall: 4_000 }])
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})

test('several reversals of one merchant in a call share its balance, the oldest first', async () => {
  const merchant = await makeMerchant(pool)
  const ids = [await paid(merchant), await paid(merchant), await paid(merchant)]
  await spend(merchant, 8_000n)
  const answers = await reverseMany(pool, ids.toReversed())
  expect(answers.map(({ shortfall }) => shortfall)).toEqual([5_000n, 3_000n, 0n])
  expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 0n, reserved: 8_000n })
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})

test('a payment that is twice in one call moves once', async () => {
  const merchant = await makeMerchant(pool)
  const id = await paid(merchant)
  expect((await reverseMany(pool, [id, id])).map(({ moved }) => moved)).toEqual([true, false])
  expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 0n, reserved: 0n })
})

test('only a paid payment is reversed, and only on the operator’s own answer', async () => {
  const merchant = await makeMerchant(pool)
  for (const to of ['pending', 'failed', 'expired', 'cancelled']) {
    const { transactionId } = await openCollection(pool, merchant)
    if (to !== 'pending') await settleMany(pool, [{ id: transactionId, to }])
    expect(await reverseMany(pool, [transactionId])).toEqual([{ moved: false, status: to, shortfall: null }])
  }
  const id = await paid(merchant)
  for (const source of ['initiate', 'service', 'callback'])
    expect((await reverseMany(pool, [id], source))[0]?.moved).toBe(false)
  expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 5_000n, reserved: 0n })
  expect(transactionStates.canMove('success', 'reversed')).toBe(true)
})

test('a reversal and payments out at once: nothing below zero, everything proven', async () => {
  const merchant = await makeMerchant(pool)
  const ids = await Promise.all(Array.from({ length: 10 }, () => paid(merchant)))
  const pay = () => createPayouts(pool, [payoutItem(merchant, { amount: 3_000n })])
  await Promise.all(ids.flatMap((id) => [reverseMany(pool, [id]), pay()]))
  const { available, reserved } = await balanceOf(pool, merchant.merchantId)
  expect(available).toBe(0n)
  expect(reserved % 3_000n).toBe(0n)
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})
