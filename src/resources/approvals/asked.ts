import DataLoader from 'dataloader'
import { mine } from '../../access/actor.ts'
import { type Role, roles } from '../../access/roles.ts'
import type { Context } from '../../context.ts'
import type { ApprovalStatus } from './states.ts'
import type { Subject } from './subjects.ts'

/** Of a payout or a batch, what says who may approve it. */
export interface Asked {
  subject: Subject
  id: bigint
  /** Whether it waits for people. */
  waits: boolean
  approval: ApprovalStatus
  approvalDigest: Uint8Array | null
  approvalExpiresAt: Date | null
  approvalsRequired: number
  /** The members who are behind it: none of them decides. */
  makers: readonly number[]
}

/** What a person decided about it. */
export interface Verdict {
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

type Named = Pick<Asked, 'subject' | 'id'>

const loaders = new WeakMap<Context, DataLoader<Named, Verdict[]>>()

/** The decisions about it, the first one first: one statement for all that a level asks for. */
export function verdictsOf(ctx: Context, asked: Named): Promise<Verdict[]> {
  // A live stream asks again, and means what is there by then.
  const loader =
    loaders.get(ctx) ?? new DataLoader<Named, Verdict[]>((all) => readVerdicts(ctx, all), { cache: false })
  loaders.set(ctx, loader)
  return loader.load(asked)
}

async function readVerdicts(ctx: Context, all: readonly Named[]): Promise<Verdict[][]> {
  const idsOf = (subject: Subject) => all.filter((one) => one.subject === subject).map(({ id }) => id)
  const { rows } = await ctx.database.merchantPool.query<Verdict & { payoutId: bigint; batchId: number }>({
    name: 'approval_verdicts',
    text: `SELECT v.payout_id AS "payoutId", v.batch_id AS "batchId", v.member_id AS "memberId",
        t.name, v.role, v.verdict, v.reason, v.created_at AS at,
        t.status = 'active' AND t.role = ANY ($4::member_role[]) AS counts
      FROM approval_verdict v JOIN team_member t ON t.id = v.member_id AND t.merchant_id = v.merchant_id
      WHERE (v.payout_id = ANY ($1) OR v.batch_id = ANY ($2)) AND v.merchant_id = $3 ORDER BY v.id`,
    values: [idsOf('payout'), idsOf('batch'), mine(ctx).merchantId, approvers],
  })
  const nameOf = ({ subject, id }: Named) => `${subject}:${id}`
  const found = Map.groupBy(rows, ({ payoutId, batchId }) =>
    payoutId === null ? `batch:${batchId}` : `payout:${payoutId}`,
  )
  return all.map((one) => found.get(nameOf(one)) ?? [])
}

const approvers = Object.entries(roles).flatMap(([role, { approves }]) => (approves ? [role] : []))

/** Whether the caller may approve it at this moment; the statement that approves judges again. */
export async function mayApprove(ctx: Context, asked: Asked): Promise<boolean> {
  const { memberId, role } = ctx.actor ?? { memberId: null, role: null }
  if (memberId === null || role === null || !roles[role].approves) return false
  const { waits, approvalExpiresAt, makers } = asked
  const isInTime = approvalExpiresAt !== null && approvalExpiresAt > ctx.clock.now()
  if (!waits || !isInTime || makers.includes(memberId)) return false
  const verdicts = await verdictsOf(ctx, asked)
  return !verdicts.some((verdict) => verdict.memberId === memberId)
}
