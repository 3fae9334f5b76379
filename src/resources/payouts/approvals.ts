import DataLoader from 'dataloader'
import { mine } from '../../access/actor.ts'
import { type Role, roles } from '../../access/roles.ts'
import type { Context } from '../../context.ts'
import { invalidInput } from '../../shared/input.ts'
import type { ApprovalStatus, PayoutStatus } from './states.ts'

/** What a person decided about a payout. */
export interface Verdict {
  payoutId: bigint
  memberId: number
  name: string
  /** As it was then. */
  role: Role
  verdict: Extract<ApprovalStatus, 'approved' | 'rejected'>
  /** Whether the person might still approve: an approval of whoever was removed since counts no more. */
  counts: boolean
  reason: string | null
  at: Date
}

/** Of a payout, what says who may approve it. */
export interface Approval {
  id: bigint
  status: PayoutStatus
  approval: ApprovalStatus
  approvalDigest: Uint8Array | null
  approvalExpiresAt: Date | null
  approvalsRequired: number
  makerMemberId: number | null
}

const loaders = new WeakMap<Context, DataLoader<bigint, Verdict[]>>()

/** The decisions about a payout, the first one first: one statement for all that a level asks for. */
export function verdictsOf(ctx: Context, payoutId: bigint): Promise<Verdict[]> {
  // A live stream asks again, and means what is there by then.
  const loader =
    loaders.get(ctx) ?? new DataLoader<bigint, Verdict[]>((ids) => readVerdicts(ctx, ids), { cache: false })
  loaders.set(ctx, loader)
  return loader.load(payoutId)
}

async function readVerdicts(ctx: Context, ids: readonly bigint[]): Promise<Verdict[][]> {
  const { rows } = await ctx.database.merchantPool.query<Verdict>({
    name: 'approval_verdicts',
    text: `SELECT v.payout_id AS "payoutId", v.member_id AS "memberId", t.name, v.role, v.verdict, v.reason,
        v.created_at AS at, t.status = 'active' AND t.role = ANY ($3::member_role[]) AS counts
      FROM approval_verdict v JOIN team_member t ON t.id = v.member_id AND t.merchant_id = v.merchant_id
      WHERE v.payout_id = ANY ($1) AND v.merchant_id = $2 ORDER BY v.id`,
    values: [ids, mine(ctx).merchantId, approvers],
  })
  const found = Map.groupBy(rows, ({ payoutId }) => payoutId)
  return ids.map((id) => found.get(id) ?? [])
}

const approvers = Object.entries(roles).flatMap(([role, { approves }]) => (approves ? [role] : []))

/** Whether the caller may approve it at this moment; the statement that approves judges again. */
export async function mayApprove(ctx: Context, payout: Approval): Promise<boolean> {
  const { memberId, role } = ctx.actor ?? { memberId: null, role: null }
  if (memberId === null || role === null || !roles[role].approves) return false
  const { status, approval, approvalExpiresAt, makerMemberId } = payout
  const waits = status === 'pending' && approval === 'pending'
  const isInTime = approvalExpiresAt !== null && approvalExpiresAt > ctx.clock.now()
  if (!waits || !isInTime || makerMemberId === memberId) return false
  const verdicts = await verdictsOf(ctx, payout.id)
  return !verdicts.some((verdict) => verdict.memberId === memberId)
}

/** The payouts of the caller's merchant that wait for people, after a cursor of `waitingCursor`. */
export function waitingWhere(ctx: Context, after: string | null) {
  const waiting = { ...mine(ctx), approval: 'pending', status: 'pending' } as const
  if (after === null) return waiting
  const [, ms, id] = /^(\d{1,14})_(\d{1,18})$/.exec(after) ?? []
  if (ms === undefined || id === undefined) {
    throw invalidInput([{ field: 'after', message: 'must be a cursor that this service gave' }])
  }
  const approvalExpiresAt = new Date(Number(ms))
  return {
    ...waiting,
    approvalExpiresAt: { gte: approvalExpiresAt },
    OR: [{ approvalExpiresAt: { gt: approvalExpiresAt } }, { id: { gt: BigInt(id) } }],
  }
}

/** What expires first comes first. */
export function waitingCursor({ id, approvalExpiresAt }: Pick<Approval, 'id' | 'approvalExpiresAt'>): string {
  return `${approvalExpiresAt?.getTime() ?? 0}_${id}`
}
