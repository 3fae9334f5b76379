import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifyLedger } from '../../src/ledger/verify.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { corrupt as corruptRows } from '../kit/corrupt.ts'
import { openDeposit, openPayout, settleDeposits } from '../kit/money-out.ts'
import { fundedMerchant, openCollection, problemsOf, reverseMany, settleMany } from '../kit/money.ts'

let db: TestDatabase
beforeAll(async () => void (db = await createTestDatabase()))
afterAll(() => db.drop())

/** A merchant with 10,000 francs given, 5,000 collected, 2,000 paid out and 1,000 given back. */
async function lively(): Promise<{ merchantId: number; id: bigint }> {
  const { pool } = db.database
  const merchant = await fundedMerchant(pool, 10_000n)
  const { transactionId: id } = await openCollection(pool, merchant)
  await settleMany(pool, [{ id, to: 'success' }])
  const made = [
    await openDeposit(pool, merchant, { amount: 2_000n }),
    await openDeposit(pool, merchant, { amount: 1_000n }),
  ] as const
  await settleDeposits(pool, [
    { id: made[0].transactionId, to: 'success' },
    { id: made[1].transactionId, to: 'failed' },
  ])
  await openPayout(pool, merchant, { amount: 1_500n })
  return { merchantId: merchant.merchantId, id }
}

/** One row is changed behind the back of everything. */
async function corrupt(statement: string, values: unknown[] = []): Promise<void> {
  expect(await corruptRows(db.owner, statement, values)).toBe(1)
}

test('a sound ledger has no problem', async () => {
  const { merchantId } = await lively()
  expect(await problemsOf(db.database.pool, merchantId)).toEqual([])
})

/** A merchant with 3,000 francs left when its 5,000 are taken back. */
async function robbed(): Promise<{ merchantId: number; id: bigint }> {
  const { pool } = db.database
  const merchant = await fundedMerchant(pool, 0n)
  const { transactionId: id } = await openCollection(pool, merchant)
  await settleMany(pool, [{ id, to: 'success' }])
  await openPayout(pool, merchant, { amount: 2_000n })
  await reverseMany(pool, [id])
  return { merchantId: merchant.merchantId, id }
}

describe('the proof finds in a reversal', () => {
  test.each<[what: string, found: RegExp, statement: string]>([
    [
      'that nothing was given back',
      /reversed but was never given back/,
      `DELETE FROM ledger_entry WHERE merchant_id = $1 AND step IN ('reverse', 'shortfall')
        AND amount <> 3000`,
    ],
    [
      'another amount',
      /given back with another amount/,
      `UPDATE ledger_entry SET amount = 2001 WHERE merchant_id = $1 AND step = 'shortfall'`,
    ],
    [
      'another operator',
      /given back with another amount, account/,
      `UPDATE ledger_entry SET credit = 'clearing_operator_d' WHERE merchant_id = $1 AND step = 'shortfall'`,
    ],
    [
      'a debt that the balance paid',
      /is no valid movement/,
      `UPDATE ledger_entry SET debit = 'available' WHERE merchant_id = $1 AND step = 'shortfall'`,
    ],
    [
      'a payment that stands',
      /given back but is not reversed/,
      `UPDATE transaction SET status = 'success' WHERE merchant_id = $1`,
    ],
  ])('%s', async (what, found, statement) => {
    const { merchantId, id } = await robbed()
    expect(await problemsOf(db.database.pool, merchantId)).toEqual([])
    if (what === 'that nothing was given back') {
      await corrupt(`DELETE FROM ledger_entry WHERE origin = $1 AND step = 'reverse'`, [`transaction:${id}`])
      await corrupt('UPDATE merchant_balance SET available = 3000 WHERE merchant_id = $1', [merchantId])
    }
    await corrupt(statement, [merchantId])
    expect(await problemsOf(db.database.pool, merchantId)).toContainEqual(expect.stringMatching(found))
  })
})

describe('the proof finds', () => {
  test.each<[what: string, found: RegExp, statement: string]>([
    [
      'a balance that is too high',
      /^balance says available 14501/,
      'UPDATE merchant_balance SET available = available + 3001 WHERE merchant_id = $1',
    ],
    [
      'money moved between available and reserved',
      /^balance says/,
      'UPDATE merchant_balance SET available = available - 1, reserved = reserved + 1 WHERE merchant_id = $1',
    ],
    ['a balance that is gone', /no balance/, 'DELETE FROM merchant_balance WHERE merchant_id = $1'],
    [
      'a missing credit',
      /paid but was never credited/,
      `DELETE FROM ledger_entry WHERE merchant_id = $1 AND step = 'credit'`,
    ],
    [
      'a doubled amount',
      /credited with another amount/,
      `UPDATE ledger_entry SET amount = amount * 2 WHERE merchant_id = $1 AND step = 'credit'`,
    ],
    [
      'a credit from another operator',
      /another amount, account/,
      `UPDATE ledger_entry SET debit = 'clearing_operator_d' WHERE merchant_id = $1 AND step = 'credit'`,
    ],
    [
      'a payment that is no longer paid',
      /credited but is not paid/,
      `UPDATE transaction SET status = 'failed', settled_amount = NULL
       WHERE merchant_id = $1 AND transaction_type = 'pay'`,
    ],
    [
      'a payment settled for less',
      /another amount/,
      `UPDATE transaction SET settled_amount = settled_amount - 1
       WHERE merchant_id = $1 AND transaction_type = 'pay'`,
    ],
    [
      'a missing end of a reservation',
      /^balance says/,
      `DELETE FROM ledger_entry WHERE merchant_id = $1 AND step = 'post'`,
    ],
    [
      'a missing beginning of a reservation',
      /ended unlike its reservation/,
      `DELETE FROM ledger_entry WHERE merchant_id = $1 AND step = 'reserve' AND amount = 2000`,
    ],
    [
      'a reservation that ended with more',
      /ended unlike its reservation/,
      `UPDATE ledger_entry SET amount = 2001 WHERE merchant_id = $1 AND step = 'post'`,
    ],
    [
      'a movement without a cause in the books',
      /^balance says/,
      `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
       VALUES ($1, 'nothing', 'fund', 'funding', 'available', 1, now())`,
    ],
  ])('%s', async (_what, found, statement) => {
    const { merchantId } = await lively()
    await corrupt(statement, [merchantId])
    const problems = await problemsOf(db.database.pool, merchantId)
    expect(problems).toContainEqual(expect.stringMatching(found))
  })

  test('money that moved from one merchant to another, with both balances made to fit', async () => {
    const [a, b] = [await lively(), await lively()]
    await corrupt(`UPDATE ledger_entry SET merchant_id = $2 WHERE origin = $1 AND step = 'credit'`, [
      `transaction:${a.id}`,
      b.merchantId,
    ])
    await corrupt('UPDATE merchant_balance SET available = available - 5000 WHERE merchant_id = $1', [
      a.merchantId,
    ])
    await corrupt('UPDATE merchant_balance SET available = available + 5000 WHERE merchant_id = $1', [
      b.merchantId,
    ])
    expect(await problemsOf(db.database.pool, a.merchantId, b.merchantId)).toContain(
      `transaction:${a.id} was credited with another amount, account or merchant`,
    )
  })

  test('a credit that went into the reserve, with the balance made to fit', async () => {
    const { merchantId, id } = await lively()
    await corrupt(`UPDATE ledger_entry SET credit = 'reserved' WHERE origin = $1`, [`transaction:${id}`])
    await corrupt(
      `UPDATE merchant_balance SET available = available - 5000, reserved = reserved + 5000
       WHERE merchant_id = $1`,
      [merchantId],
    )
    expect(await problemsOf(db.database.pool, merchantId)).toContain(
      `transaction:${id} was credited with another amount, account or merchant`,
    )
  })
})

test('the problems name the merchant', async () => {
  const { merchantId } = await lively()
  await corrupt('UPDATE merchant_balance SET reserved = reserved + 1 WHERE merchant_id = $1', [merchantId])
  expect(await verifyLedger(db.database.pool)).toContainEqual({
    invariant: 'balances_equal_entries',
    merchantId,
    problem: 'balance says available 11500, reserved 1501; its entries say 11500, 1500',
  })
})
