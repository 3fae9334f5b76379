import type pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { cancelBatchesOf } from '../../src/resources/batches/cancel-all.ts'
import { nameHolder, makeMember, type TestMember } from '../kit/members.ts'
import { deactivate, openTestAccess } from '../kit/merchants.ts'
import { useTestDatabase } from '../kit/database.ts'
import { balanceOf, eventTypes, fundedMerchant, problemsOf } from '../kit/money.ts'
import {
  beginRecipients,
  cancelBatch,
  openBatch,
  openDraft,
  payees,
  processBatch,
  settleRecipients,
} from '../kit/money-bulk.ts'
import { entriesOf } from '../kit/money-out.ts'

// The rules that the statements that decide about batches keep by themselves, for every caller.

const db = await useTestDatabase()
const { pool } = db.database
/** A second process. */
const other = db.secondProcess()
const access = await openTestAccess(pool)
const person = (merchantId: number) => makeMember(access, merchantId, 'finance')

async function shopAsking(required: number) {
  const merchant = await fundedMerchant(pool, 100_000n)
  await nameHolder(db.owner, access, merchant.merchantId)
  await db.owner.query(
    'UPDATE merchant SET payouts_require_approval = true, approvals_required = $2 WHERE id = $1',
    [merchant.merchantId, required],
  )
  return merchant
}

async function openWaiting(merchant: Awaited<ReturnType<typeof shopAsking>>, count = 1): Promise<number> {
  const id = await openDraft(pool, merchant, payees(count))
  expect(await processBatch(pool, merchant, id)).toBe('pending_approval')
  return id
}

/** Runs `decide_waiting` itself. */
async function decide(by: TestMember, id: number, to: 'approved' | 'rejected', from: pg.Pool = pool) {
  const { rows } = await from.query<{ outcome: string }>(
    `SELECT outcome FROM decide_waiting($1, 'batch', $2::int, $3, 1, $4,
       (SELECT approval_digest FROM batch WHERE id = $2 AND $5::text IS NULL), $5,
       ROW($1, 'platform', NULL, NULL, 'rest', 'decide')::audit_recording)`,
    [by.merchantId, id, by.sessionId, to, to === 'rejected' ? 'no' : null],
  )
  return rows[0]?.outcome
}

async function statusOf(id: number): Promise<string> {
  const { rows } = await pool.query<{ line: string }>(
    `SELECT status || ' ' || approval AS line FROM batch WHERE id = $1`,
    [id],
  )
  return rows[0]?.line ?? 'gone'
}

/** The service's time, for as long as the test runs. */
async function clockAt(ms: number): Promise<void> {
  const set = (offset: number) =>
    db.owner.query(
      `INSERT INTO sandbox_clock (offset_ms) VALUES ($1)
       ON CONFLICT (singleton) DO UPDATE SET offset_ms = $1`,
      [offset],
    )
  await set(Math.round(ms))
  onTestFinished(async () => void (await set(0)))
}

test('the last approval enqueues the batch, the one before does not', async () => {
  const merchant = await shopAsking(2)
  const [one, two] = [await person(merchant.merchantId), await person(merchant.merchantId)]
  const enqueued = async () =>
    (await db.owner.query(`SELECT FROM graphile_worker._private_jobs WHERE key = 'batches.send'`)).rowCount
  const id = await openWaiting(merchant)
  await decide(one, id, 'approved')
  expect([await enqueued(), await statusOf(id)]).toEqual([0, 'pending_approval pending'])
  expect(await beginRecipients(pool)).toEqual([])
  await decide(two, id, 'approved')
  expect([await enqueued(), await statusOf(id)]).toEqual([1, 'processing approved'])
  expect(await beginRecipients(pool)).toHaveLength(1)
})

test('approve, reject, cancel and expire when it expires: each batch has one end', async () => {
  const merchant = await shopAsking(2)
  const { merchantId } = merchant
  const [one, two, three] = [await person(merchantId), await person(merchantId), await person(merchantId)]
  const ids: number[] = []
  for (let n = 0; n < 20; n += 1) ids.push(await openWaiting(merchant, 3))
  const { rows } = await pool.query<{ left: number }>(
    `SELECT extract(epoch FROM min(approval_expires_at) - clock_timestamp())::float * 1000 AS left FROM batch
     WHERE id = ANY ($1)`,
    [ids],
  )
  await clockAt((rows[0]?.left ?? 0) - 40)
  let open = ids.length
  await Promise.all([
    ...ids.map(async (id, n) => {
      const outcomes = await Promise.all([
        decide(one, id, 'approved', n % 2 ? pool : other.pool),
        decide(two, id, 'approved'),
        n % 3 === 0 ? decide(three, id, 'rejected', other.pool) : null,
        n % 4 === 0 ? cancelBatch(pool, merchant, id) : null,
      ])
      expect(outcomes.filter((outcome) => outcome === undefined)).toEqual([])
      while ((await statusOf(id)) === 'pending_approval pending') await decide(two, id, 'approved')
      open -= 1
    }),
    ...[pool, other.pool].map(async (from) => {
      while (open > 0) await from.query('SELECT expire_batch()')
    }),
  ])
  const held = 'reserve available > reserved 3000'
  let going = 0n
  for (const id of ids) {
    const end = await statusOf(id)
    const went = end === 'processing approved'
    if (went) going += 1n
    expect(await entriesOf(pool, `batch:${id}`)).toEqual(
      went ? [held] : [held, 'void reserved > available 3000'],
    )
    expect(end).toMatch(/^(processing approved|cancelled (approved|pending|rejected|expired))$/)
  }
  const reserved = going * 3_000n
  expect(await balanceOf(pool, merchantId)).toEqual({ available: 100_000n - reserved, reserved })
  expect(await problemsOf(pool, merchantId)).toEqual([])
})

test('an approval that comes too late does not count', async () => {
  const merchant = await shopAsking(1)
  const id = await openWaiting(merchant)
  await clockAt(7 * 86_400_000)
  const by = await person(merchant.merchantId)
  expect(await decide(by, id, 'approved')).toBe('expired')
  const { rows } = await pool.query('SELECT expire_batch() AS first, expire_batch() AS second')
  expect(rows).toEqual([{ first: true, second: false }])
  expect(await statusOf(id)).toBe('cancelled expired')
  expect(await decide(by, id, 'approved')).toBe('over')
})

test('a deactivated merchant begins no recipient; only its unsent ones are cancelled, once', async () => {
  const [gone, stays] = [await shopAsking(1), await fundedMerchant(pool, 100_000n)]
  const draft = await openDraft(pool, gone, payees(1))
  const waits = await openWaiting(gone, 2)
  await db.owner.query('UPDATE merchant SET payouts_require_approval = false WHERE id = $1', [
    gone.merchantId,
  ])
  // The batches of other tests are sent first, so that the next turn belongs to this test.
  while ((await beginRecipients(pool)).length > 0);
  const going = await openBatch(pool, gone, payees(3))
  const mine = (begun: Awaited<ReturnType<typeof beginRecipients>>) =>
    begun.filter(({ merchantId }) => merchantId === gone.merchantId)
  const [sent] = mine(await beginRecipients(pool, { open: ['OperatorA'], room: 1 }))
  const theirs = await openBatch(pool, stays, payees(2))
  expect(await cancelBatchesOf(db, gone.merchantId)).toBe(0)
  await deactivate(pool, gone.merchantId)
  expect(mine(await beginRecipients(pool))).toEqual([])
  const counts = await Promise.all([1, 2].map(() => cancelBatchesOf(db, gone.merchantId)))
  expect(counts.reduce((sum, n) => sum + n, 0)).toBe(3)
  expect([
    await statusOf(draft),
    await statusOf(waits),
    await statusOf(going),
    await statusOf(theirs),
  ]).toEqual([
    'cancelled not_required',
    'cancelled pending',
    'processing not_required',
    'processing not_required',
  ])
  expect(await balanceOf(pool, gone.merchantId)).toEqual({ available: 99_000n, reserved: 1_000n })
  await settleRecipients(pool, [{ id: sent?.recipientId ?? 0n, to: 'success', amount: 1_000n }])
  expect(await statusOf(going)).toBe('cancelled not_required')
  expect(await balanceOf(pool, gone.merchantId)).toEqual({ available: 99_000n, reserved: 0n })
  expect((await eventTypes(pool, gone.merchantId)).at(-1)).toBe('bulk_pay_done')
  const { rows } = await db.owner.query(
    `SELECT actor, target FROM audit_entry WHERE merchant_id = $1 AND operation = 'merchant cancel-payouts'
     ORDER BY target`,
    [gone.merchantId],
  )
  expect(rows).toEqual(
    [draft, waits, going]
      .map((id) => `batch:${id}`)
      .toSorted()
      .map((target) => ({ actor: 'platform', target })),
  )
  expect(await problemsOf(pool, gone.merchantId, stays.merchantId)).toEqual([])
})
