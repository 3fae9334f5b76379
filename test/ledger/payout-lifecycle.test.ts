import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { approvalStates } from '../../src/resources/approvals/states.ts'
import { payoutStates } from '../../src/resources/payouts/states.ts'
import { cancelPayoutsOf } from '../../src/resources/payouts/cancel-all.ts'
import { deactivate } from '../kit/merchants.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { balanceOf, eventTypes, fundedMerchant, problemsOf } from '../kit/money.ts'
import { approveByHand, openPayout, reserveByHand, settlePayouts } from '../kit/money-out.ts'

let db: TestDatabase
let pool: pg.Pool
beforeAll(async () => {
  db = await createTestDatabase()
  pool = db.database.pool
})
afterAll(() => db.drop())

/** A payout as it stands, with its money set aside. */
async function insertWith(status: string, approval = 'not_required'): Promise<bigint> {
  const { merchantId } = await fundedMerchant(pool, 5_000n)
  const { rows } = await db.owner.query<{ id: bigint }>(
    `INSERT INTO payout (merchant_id, payment_method, destination_phone, amount, status, reference,
       send_at, approval,
       approval_digest, approval_expires_at, maker, request_data, settled_amount, created_at)
     SELECT $1::int, 'OperatorA', '+22370000001', 5000, $2::payout_status, 'standing',
       now() + interval '1 day',
       $3::approval_status,
       CASE WHEN asked THEN sha256('') END, CASE WHEN asked THEN now() END, 'api_key:1', '{}',
         $4::bigint, now()
     FROM (SELECT $3::text <> 'not_required' AS asked) AS a RETURNING id`,
    [merchantId, status, approval, status === 'completed' ? 5_000n : null],
  )
  const id = rows[0]?.id ?? 0n
  await reserveByHand(db.owner, merchantId, `payout:${id}`, 5_000n)
  return id
}
const codeOf = (change: Promise<unknown>) =>
  change.then(
    () => 'changed',
    ({ code }: { code: string }) => code,
  )

describe('the lifecycle holds for the verb and for the owner of the tables', () => {
  const { statuses } = payoutStates
  test.each(statuses.flatMap((from) => statuses.map((to) => [from, to] as const)))(
    '%s to %s',
    async (from, to) => {
      const settled = await insertWith(from)
      const may = from === 'processing' && payoutStates.canMove(from, to)
      expect(await settlePayouts(pool, [{ id: settled, to }])).toEqual([
        { moved: may, status: may ? to : from },
      ])
      const change = db.owner.query('UPDATE payout SET status = $2, settled_amount = $3 WHERE id = $1', [
        await insertWith(from),
        to,
        to === 'completed' ? 5_000n : null,
      ])
      const moves = from === to || payoutStates.canMove(from, to)
      expect(await codeOf(change)).toBe(moves ? 'changed' : '23000')
    },
  )

  test.each(
    approvalStates.statuses.flatMap((from) => approvalStates.statuses.map((to) => [from, to] as const)),
  )('approval: %s to %s', async (from, to) => {
    const over = from === 'rejected' || from === 'expired'
    const id = await insertWith(over ? 'cancelled' : 'pending', from)
    await approveByHand(db.owner, id)
    const change = db.owner.query(
      `UPDATE payout SET approval = $2::approval_status,
         status = CASE WHEN $2::text IN ('rejected', 'expired') THEN 'cancelled' ELSE status END
           WHERE id = $1`,
      [id, to],
    )
    const outcome = await codeOf(change)
    expect(outcome === 'changed').toBe(from === to || approvalStates.canMove(from, to))
    expect(outcome).toMatch(/^(?:changed|23000|23514)$/)
  })

  test.each([
    ['payout_approval', `UPDATE payout SET status = 'processing'`, 'pending'],
    ['payout_approval', `UPDATE payout SET approval = 'rejected'`, 'pending'],
    ['payout_settled_amount', `UPDATE payout SET settled_amount = 1`, 'not_required'],
    ['payout_reversed_at', `UPDATE payout SET reversed_at = now()`, 'not_required'],
  ])('%s stops %s', async (constraint, statement, approval) => {
    const id = await insertWith('pending', approval)
    await expect(db.owner.query(`${statement} WHERE id = $1`, [id])).rejects.toMatchObject({ constraint })
  })

  test.each([
    'amount = 6000',
    `destination_phone = '+22370000009'`,
    `payment_method = 'OperatorD'`,
    `reference = 'another'`,
    'merchant_id = merchant_id + 1',
    `send_at = now()`,
    `maker = 'another'`,
    `approval_digest = sha256('x')`,
    'approvals_required = 2',
    'maker_member_id = 1',
  ])('the terms of a payout never change: %s', async (change) => {
    const id = await insertWith('pending', 'pending')
    const changing = db.owner.query(`UPDATE payout SET ${change} WHERE id = $1`, [id])
    await expect(changing).rejects.toMatchObject({ code: '23000' })
  })
})

test('the digest that an approval names covers each part of the payout', async () => {
  const digest = async (change: string) => {
    const { rows } = await pool.query(
      `SELECT encode(payout_digest(merchant, method, phone, amount, reference, scheduled), 'hex') AS digest
       FROM (SELECT ${change}) AS p (merchant, method, phone, amount, reference, scheduled)`,
    )
    return rows[0].digest as string
  }
  const day = `timestamptz '2026-01-01'`
  const digests = await Promise.all([
    digest(`1, 'OperatorA'::provider, '+22370000001', 1000::bigint, 'a', NULL::timestamptz`),
    digest(`2, 'OperatorA'::provider, '+22370000001', 1000::bigint, 'a', NULL::timestamptz`),
    digest(`1, 'OperatorB'::provider, '+22370000001', 1000::bigint, 'a', NULL::timestamptz`),
    digest(`1, 'OperatorA'::provider, '+22370000002', 1000::bigint, 'a', NULL::timestamptz`),
    digest(`1, 'OperatorA'::provider, '+22370000001', 1001::bigint, 'a', NULL::timestamptz`),
    digest(`1, 'OperatorA'::provider, '+22370000001', 1000::bigint, 'b', NULL::timestamptz`),
    digest(`1, 'OperatorA'::provider, '+22370000001', 1000::bigint, 'a', ${day}`),
    digest(`1, 'OperatorA'::provider, '+22370000001', 1000::bigint, 'a', ${day} + interval '1 ms'`),
  ])
  expect(new Set(digests).size).toBe(8)
  expect(digests[0]).toMatch(/^[0-9a-f]{64}$/)
})

test('all payouts of a deactivated merchant are cancelled, once, and no other merchant’s', async () => {
  const [gone, stays] = [await fundedMerchant(pool, 9_000n), await fundedMerchant(pool, 9_000n)]
  await db.owner.query('UPDATE merchant SET payouts_require_approval = true WHERE id = $1', [gone.merchantId])
  const far = { scheduledAt: new Date(Date.now() + 300 * 86_400_000) }
  for (const merchant of [gone, stays]) {
    await openPayout(pool, merchant)
    await openPayout(pool, merchant, far)
  }
  await expect(cancelPayoutsOf(db, gone.merchantId)).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
  await expect(cancelPayoutsOf(db, 999_999)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await deactivate(pool, gone.merchantId)
  const counts = await Promise.all([1, 2].map(() => cancelPayoutsOf(db, gone.merchantId)))
  expect(counts.reduce((sum, n) => sum + n, 0)).toBe(2)
  expect(await balanceOf(pool, gone.merchantId)).toEqual({ available: 9_000n, reserved: 0n })
  expect((await eventTypes(pool, gone.merchantId)).slice(-2)).toEqual([
    'payout_cancelled',
    'payout_cancelled',
  ])
  const { rows } = await db.owner.query('SELECT merchant_id AS id, status FROM payout ORDER BY id')
  expect(rows.filter(({ id }) => id === stays.merchantId).map(({ status }) => status)).toEqual([
    'pending',
    'pending',
  ])
  expect(await problemsOf(pool, gone.merchantId, stays.merchantId)).toEqual([])
})
