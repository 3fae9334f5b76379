import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { approvalStates } from '../../src/resources/approvals/states.ts'
import { batchStates } from '../../src/resources/batches/states.ts'
import { makeMember } from '../kit/members.ts'
import { makeMerchant, openTestAccess } from '../kit/merchants.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'

// Over every pair of statuses and of approvals: a batch moves along its lifecycles only. The database refuses
// any other move, also one with all the columns of the new status.

let db: TestDatabase
let merchantId: number
let memberId: number
beforeAll(async () => {
  db = await createTestDatabase()
  const merchant = await makeMerchant(db.database.pool)
  merchantId = merchant.merchantId
  const access = await openTestAccess(db.database.pool)
  ;({ memberId } = await makeMember(access, merchantId, 'finance'))
})
afterAll(() => db.drop())

type Status = (typeof batchStates.statuses)[number]
type Approval = (typeof approvalStates.statuses)[number]

/** The columns of a batch of two in each status. */
const columns: Record<Status, string> = {
  draft: '0, 0, 0, 0, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz',
  pending_approval: '0, 0, 0, 0, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz',
  processing: '0, 0, 0, 0, now(), NULL::timestamptz, NULL::timestamptz',
  completed: '2, 0, 0, 2000, now(), NULL::timestamptz, now()',
  partially_completed: '1, 1, 0, 1000, now(), NULL::timestamptz, now()',
  failed: '0, 2, 0, 0, now(), NULL::timestamptz, now()',
  cancelled: '0, 0, 2, 0, NULL::timestamptz, now(), now()',
}
const names = `succeeded_count, failed_count, cancelled_count, paid_amount, started_at, cancel_requested_at,
  processed_at`

async function insertWith(status: Status, approval: Approval): Promise<number> {
  const isAsked = approval !== 'not_required'
  const { rows } = await db.owner.query<{ id: number }>(
    `INSERT INTO batch (merchant_id, recipient_count, total_amount, status, ${names}, approval,
       approval_digest, approval_expires_at, approvals_required, maker, created_at)
     SELECT $1, 2, 2000, $2::batch_status, ${columns[status]}, $3::approval_status,
       CASE WHEN $4::boolean THEN sha256('x') END,
       CASE WHEN $4 THEN now() END, CASE WHEN $4 THEN 1 ELSE 0 END, 'api_key:1', now() RETURNING id`,
    [merchantId, status, approval, isAsked],
  )
  const id = rows[0]?.id ?? 0
  // A member approves the batch, by the tables alone.
  await db.owner.query(
    `INSERT INTO approval_verdict (merchant_id, batch_id, member_id, role, verdict, digest, created_at)
     SELECT merchant_id, id, $2, 'finance', 'approved', approval_digest, now() FROM batch
     WHERE id = $1 AND approval_digest IS NOT NULL`,
    [id, memberId],
  )
  return id
}

/** @returns `changed`, or the code of the refusal */
async function move(id: number, to: Status, approval: Approval): Promise<string> {
  const isAsked = approval !== 'not_required'
  try {
    await db.owner.query(
      `UPDATE batch SET status = $2, (${names}) = (SELECT ${columns[to]}), approval = $3,
         approval_digest = CASE WHEN $4::boolean THEN coalesce(approval_digest, sha256('x')) END,
         approval_expires_at = CASE WHEN $4 THEN coalesce(approval_expires_at, now()) END,
         approvals_required = CASE WHEN $4 THEN 1 ELSE 0 END
       WHERE id = $1`,
      [id, to, approval, isAsked],
    )
    return 'changed'
  } catch (error) {
    return (error as { code: string }).code
  }
}

const pairsOf = <S>(statuses: readonly S[]) =>
  statuses.flatMap((from) => statuses.map((to) => [from, to] as const))

describe('a batch', () => {
  test.each(pairsOf(batchStates.statuses))('%s to %s', async (from, to) => {
    const before = from === 'pending_approval' ? 'pending' : 'not_required'
    const id = await insertWith(from, before)
    const after = {
      pending: to === 'pending_approval' || to === 'cancelled' ? ('pending' as const) : ('approved' as const),
      not_required: to === 'pending_approval' ? ('pending' as const) : ('not_required' as const),
    }[before]
    const outcome = await move(id, to, after)
    expect(outcome === 'changed').toBe(from === to || batchStates.canMove(from, to))
    expect(outcome).toMatch(/^(?:changed|23000|23514)$/)
  })
})

describe('the approval of a batch', () => {
  const statusOf: Record<Approval, Status> = {
    not_required: 'draft',
    pending: 'pending_approval',
    approved: 'processing',
    rejected: 'cancelled',
    expired: 'cancelled',
  }

  test.each(pairsOf(approvalStates.statuses))('%s to %s', async (from, to) => {
    const id = await insertWith(statusOf[from], from)
    const asks = from === 'not_required' && to === 'pending'
    const outcome = await move(id, statusOf[to], to)
    expect(outcome === 'changed').toBe(from === to || asks || approvalStates.canMove(from, to))
    expect(outcome).toMatch(/^(?:changed|23000|23514)$/)
  })

  test.each(['processing', 'completed', 'failed'] as const)('is awaited before it is %s', async (to) => {
    const id = await insertWith('pending_approval', 'pending')
    expect(await move(id, to, 'pending')).toBe('23514')
  })

  test('needs enough members who may approve', async () => {
    const id = await insertWith('pending_approval', 'pending')
    await db.owner.query(`UPDATE team_member SET role = 'viewer' WHERE id = $1`, [memberId])
    expect(await move(id, 'processing', 'approved')).toBe('23000')
    await db.owner.query(`UPDATE team_member SET role = 'finance' WHERE id = $1`, [memberId])
    // A member with a higher role counts a day after the change.
    expect(await move(id, 'processing', 'approved')).toBe('23000')
    await db.owner.query(
      `UPDATE team_member SET approver_since = approver_since - interval '1 day' WHERE id = $1`,
      [memberId],
    )
    expect(await move(id, 'processing', 'approved')).toBe('changed')
  })
})
