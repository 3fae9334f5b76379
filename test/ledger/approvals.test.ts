import type pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { borrow } from '../kit/client.ts'
import { eventually } from '../kit/eventually.ts'
import { roleNames, roles } from '../../src/identity/members/roles.ts'
import { nameHolder, makeMember, type TestMember } from '../kit/members.ts'
import { openTestAccess } from '../kit/merchants.ts'
import { useTestDatabase } from '../kit/database.ts'
import { balanceOf, fundedMerchant, problemsOf } from '../kit/money.ts'
import { beginPayouts, cancelPayout, entriesOf, openPayout } from '../kit/money-out.ts'

// The rules that the statement that decides about a payout keeps by itself, for every caller.

const db = await useTestDatabase()
const { pool } = db.database
/** A second process. */
const other = db.secondProcess()
const access = await openTestAccess(pool)
const person = (merchantId: number, role: (typeof roleNames)[number] = 'finance') =>
  makeMember(access, merchantId, role)

async function shopAsking(required: number) {
  const merchant = await fundedMerchant(pool, 100_000n)
  await nameHolder(db.owner, access, merchant.merchantId)
  await db.owner.query(
    'UPDATE merchant SET payouts_require_approval = true, approvals_required = $2 WHERE id = $1',
    [merchant.merchantId, required],
  )
  return merchant
}

interface By {
  merchantId: number
  sessionId: number
}

/** Runs `decide_waiting` itself. @returns its outcome; nothing where there is no such payout */
async function decide(
  by: By,
  id: bigint,
  to: 'approved' | 'rejected' = 'approved',
  from: pg.Pool = pool,
): Promise<string | undefined> {
  const { rows } = await from.query<{ outcome: string }>(
    `SELECT outcome FROM decide_waiting($1, 'payout', $2, $3, 1, $4,
       (SELECT approval_digest FROM payout WHERE id = $2 AND $5::text IS NULL), $5,
       ROW($1, 'platform', NULL, NULL, 'rest', 'decide')::audit_recording)`,
    [by.merchantId, id, by.sessionId, to, to === 'rejected' ? 'no' : null],
  )
  return rows[0]?.outcome
}

async function statusOf(id: bigint): Promise<string> {
  const { rows } = await pool.query<{ line: string }>(
    `SELECT status || ' ' || approval AS line FROM payout WHERE id = $1`,
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

test.each(roleNames)('the database lets a role decide where the table does: %s', async (role) => {
  const { merchantId } = await shopAsking(1)
  const id = await openPayout(pool, await shopOf(merchantId))
  const by = await person(merchantId, role)
  expect(await decide(by, id)).toBe(roles[role].approves ? 'counted' : 'role')
})

/** The merchant's own key, as payouts are made with. */
async function shopOf(merchantId: number) {
  const { rows } = await db.owner.query<{ id: number }>(
    `SELECT id FROM api_key WHERE merchant_id = $1 LIMIT 1`,
    [merchantId],
  )
  return { merchantId, apiKeyId: rows[0]?.id ?? 0 } as Parameters<typeof openPayout>[1]
}

test('the last approval enqueues a due payout; a payout for a day to come waits', async () => {
  const merchant = await shopAsking(2)
  const [one, two] = [await person(merchant.merchantId), await person(merchant.merchantId)]
  const enqueued = async (operator: string) => {
    const key = `payouts.send:${operator}`
    const { rowCount } = await db.owner.query('SELECT FROM graphile_worker._private_jobs WHERE key = $1', [
      key,
    ])
    return rowCount
  }
  const scheduledAt = new Date(Date.now() + 86_400_000)
  const now = await openPayout(pool, merchant, { provider: 'OperatorC' })
  const then = await openPayout(pool, merchant, { provider: 'OperatorD', scheduledAt })
  for (const id of [now, then]) await decide(one, id)
  expect(await enqueued('OperatorC')).toBe(0)
  for (const id of [now, then]) await decide(two, id)
  expect([await enqueued('OperatorC'), await enqueued('OperatorD')]).toEqual([1, 0])
  expect(await statusOf(then)).toBe('pending approved')
})

describe('no decision is taken', () => {
  test.each([
    ['by a member whose session was revoked', 'UPDATE session SET revoked_at = now() WHERE id = $1'],
    [
      'by a member whose session is over',
      `UPDATE session SET expires_at = now() - interval '1 second' WHERE id = $1`,
    ],
    [
      'by a member who was removed',
      `UPDATE team_member SET status = 'removed', removed_at = now()
       WHERE id = (SELECT member_id FROM session WHERE id = $1)`,
    ],
    [
      'by a member whose merchant was deactivated',
      `UPDATE merchant SET status = 'inactive', deactivated_at = now()
       WHERE id = (SELECT merchant_id FROM session WHERE id = $1)`,
    ],
  ])('%s', async (_who, end) => {
    const merchant = await shopAsking(1)
    const id = await openPayout(pool, merchant)
    const by = await person(merchant.merchantId)
    await db.owner.query(end, [by.sessionId])
    expect(await decide(by, id)).toBe('no_person')
    expect(await decide(by, id, 'rejected')).toBe('no_person')
    expect(await statusOf(id)).toBe('pending pending')
  })

  test('by a member whose removal began before, however late it is committed', async () => {
    const merchant = await shopAsking(1)
    const id = await openPayout(pool, merchant)
    const by = await person(merchant.merchantId)
    const removal = await borrow(db.owner)
    await removal.query('BEGIN')
    await removal.query(`UPDATE team_member SET status = 'removed', removed_at = now() WHERE id = $1`, [
      by.memberId,
    ])
    const outcome = decide(by, id)
    const waiter = `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = $1::oid`
    await eventually(async () => expect((await db.owner.query(waiter, [by.merchantId])).rowCount).toBe(1))
    await removal.query('COMMIT')
    expect(await outcome).toBe('no_person')
  })

  test('with an API key, or about a payout of another merchant', async () => {
    const merchant = await shopAsking(1)
    const id = await openPayout(pool, merchant)
    const { merchantId, apiKeyId } = merchant
    expect(await decide({ merchantId, sessionId: apiKeyId }, id)).toBe('no_person')
    const stranger = await person((await shopAsking(1)).merchantId)
    expect(await decide(stranger, id)).toBeUndefined()
    expect(await decide({ ...stranger, merchantId }, id)).toBe('no_person')
  })
})

describe('the database holds', () => {
  test('that a payout with too few approvals is not approved, also against a direct update', async () => {
    const merchant = await shopAsking(2)
    const id = await openPayout(pool, merchant)
    await decide(await person(merchant.merchantId), id)
    const force = db.owner.query(`UPDATE payout SET approval = 'approved' WHERE id = $1`, [id])
    await expect(force).rejects.toMatchObject({ constraint: 'payout_approvals' })
  })

  test('each verdict: no role changes it, and the service adds none by hand', async () => {
    const merchant = await shopAsking(2)
    const id = await openPayout(pool, merchant)
    const by = await person(merchant.merchantId)
    await decide(by, id)
    for (const change of [
      `UPDATE approval_verdict SET role = 'owner'`,
      'DELETE FROM approval_verdict',
      'TRUNCATE approval_verdict',
    ]) {
      await expect(db.owner.query(change)).rejects.toMatchObject({ code: '23000' })
    }
    const insert = `INSERT INTO approval_verdict
        (merchant_id, payout_id, member_id, role, verdict, digest, created_at)
      SELECT merchant_id, id, $2, 'owner', 'approved', approval_digest, now() FROM payout WHERE id = $1`
    await expect(pool.query(insert, [id, by.memberId])).rejects.toMatchObject({ code: '42501' })
    await expect(db.owner.query(insert, [id, by.memberId])).rejects.toMatchObject({ code: '23505' })
    const stranger = await person((await shopAsking(1)).merchantId)
    await expect(db.owner.query(insert, [id, stranger.memberId])).rejects.toMatchObject({ code: '23503' })
  })
})

test('approve, reject, cancel and expire when it expires: each payout has one end', async () => {
  const merchant = await shopAsking(2)
  const { merchantId } = merchant
  const people = await Promise.all([1, 2, 3].map(() => person(merchantId)))
  const ids: bigint[] = []
  for (let n = 0; n < 24; n += 1) ids.push(await openPayout(pool, merchant))
  const { rows } = await pool.query<{ left: number }>(
    `SELECT extract(epoch FROM min(approval_expires_at) - clock_timestamp())::float * 1000 AS left FROM payout
     WHERE id = ANY ($1)`,
    [ids],
  )
  await clockAt((rows[0]?.left ?? 0) - 40)
  let open = ids.length
  await Promise.all([
    ...ids.map(async (id, n) => {
      const from = n % 2 ? pool : other.pool
      const [one, two, three] = people as [TestMember, TestMember, TestMember]
      const outcomes = await Promise.all([
        decide(one, id, 'approved', from),
        decide(two, id),
        n % 3 === 0 ? decide(three, id, 'rejected', other.pool) : null,
        n % 4 === 0 ? cancelPayout(pool, merchant, id) : null,
      ])
      expect(outcomes.filter((outcome) => outcome === undefined)).toEqual([])
      while ((await statusOf(id)) === 'pending pending') await decide(two, id)
      open -= 1
    }),
    ...[pool, other.pool].map(async (from) => {
      while (open > 0) await from.query('SELECT expire_approvals(3)')
    }),
  ])
  const nodes = await Promise.all([beginPayouts(pool), beginPayouts(other.pool)])
  const begun = nodes.flat().filter(({ payoutId }) => ids.includes(payoutId))
  const ends = await Promise.all(
    ids.map(async (id) => [id, await statusOf(id), await entriesOf(pool, `payout:${id}`)] as const),
  )
  const held = 'reserve available > reserved 1000'
  for (const [id, end, entries] of ends) {
    const went = end === 'processing approved'
    expect(entries).toEqual(went ? [held] : [held, 'void reserved > available 1000'])
    expect(begun.filter(({ payoutId }) => payoutId === id)).toHaveLength(went ? 1 : 0)
    expect(end).toMatch(/^(processing approved|cancelled (approved|pending|rejected|expired))$/)
  }
  const reserved = BigInt(begun.length) * 1_000n
  expect(await balanceOf(pool, merchantId)).toEqual({ available: 100_000n - reserved, reserved })
  expect(await problemsOf(pool)).toEqual([])
})

test('an approval that comes too late does not count', async () => {
  const merchant = await shopAsking(1)
  const id = await openPayout(pool, merchant)
  await clockAt(7 * 86_400_000)
  const by = await person(merchant.merchantId)
  expect(await decide(by, id)).toBe('expired')
  await pool.query('SELECT expire_approvals(100)')
  expect(await statusOf(id)).toBe('cancelled expired')
  expect(await decide(by, id)).toBe('over')
})
