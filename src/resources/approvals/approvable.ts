import { mine } from '../../identity/callers/actor.ts'
import { type Role, roles } from '../../identity/members/roles.ts'
import { type Context, loader } from '../../context.ts'
import type { Author } from './authors.ts'
import type { ApprovalStatus } from './states.ts'
import type { ApprovalSubjectKind } from './subjects.ts'

/**
 * The time for which a member cannot approve after joining the team or getting a higher role. The database
 * enforces the same time.
 */
const approverWaitMs = 24 * 3_600_000

/** The fields of a payout, batch, deposit or settings change that decide who may approve it. */
export interface Approvable {
  subject: ApprovalSubjectKind
  id: bigint
  /** True while the item waits for an approval. */
  waits: boolean
  approval: ApprovalStatus
  approvalDigest: Uint8Array | null
  approvalExpiresAt: Date | null
  approvalsRequired: number
  /** The members who made the item: none of them may approve it. 0 stands for an unknown maker. */
  makers: readonly number[]
  /** The author of the request that is approved, and its time; null where no approval is required. */
  request: { by: Author; at: Date } | null
}

/** The decision of one member about an item. */
export interface ApprovalVerdict {
  memberId: number
  name: string
  /** The role of the member at the moment of the decision. */
  role: Role
  verdict: Extract<ApprovalStatus, 'approved' | 'rejected'>
  /** True while the member may still approve. */
  counts: boolean
  reason: string | null
  at: Date
}

type Named = Pick<Approvable, 'subject' | 'id'>

/** Reads the decisions about an item, oldest first. All items of one level of a query share one statement. */
export function verdictsOf(ctx: Context, approvable: Named): Promise<ApprovalVerdict[]> {
  return loader<Named, ApprovalVerdict[]>(ctx, 'verdicts', (all) => readVerdicts(ctx, all)).load(approvable)
}

async function readVerdicts(ctx: Context, all: readonly Named[]): Promise<ApprovalVerdict[][]> {
  const idsOf = (subject: ApprovalSubjectKind) =>
    all.filter((one) => one.subject === subject).map(({ id }) => id)
  const { rows } = await ctx.database.merchantPool.query<ApprovalVerdict & { about: string }>({
    name: 'approval_verdicts',
    text: `SELECT coalesce('payout:' || v.payout_id, 'batch:' || v.batch_id,
          'settings:' || v.settings_change_id, 'deposit:' || v.transaction_id) AS about,
        v.member_id AS "memberId", t.name, v.role, v.verdict, v.reason, v.created_at AS at,
        t.status = 'active' AND t.role = ANY ($6::member_role[]) AND t.approver_since <= $7 AS counts
      FROM approval_verdict v JOIN team_member t ON t.id = v.member_id AND t.merchant_id = v.merchant_id
      WHERE (v.payout_id = ANY ($1) OR v.batch_id = ANY ($2) OR v.settings_change_id = ANY ($3)
          OR v.transaction_id = ANY ($4))
        AND v.merchant_id = $5 ORDER BY v.id`,
    values: [
      idsOf('payout'),
      idsOf('batch'),
      idsOf('settings'),
      idsOf('deposit'),
      mine(ctx).merchantId,
      approvers,
      approverSinceMax(ctx),
    ],
  })
  const found = Map.groupBy(rows, ({ about }) => about)
  return all.map(({ subject, id }) => found.get(`${subject}:${id}`) ?? [])
}

const approvers = Object.entries(roles).flatMap(([role, { approves }]) => (approves ? [role] : []))

/** Returns the moment 24 hours ago: a member who joined or got a higher role after it cannot approve yet. */
function approverSinceMax(ctx: Context): Date {
  return new Date(ctx.clock.now().getTime() - approverWaitMs)
}

/** The reasons why a caller cannot approve an item, with their descriptions in the schema. */
export const obstacles = {
  NOT_WAITING: 'The request does not wait for an approval, or its time is over.',
  NO_PERSON: 'The caller is an API key. Only a signed-in member can approve.',
  ROLE: 'The role of the caller cannot approve requests.',
  MAKER: 'The caller made the request, or received the secret of the API key that made it.',
  UNKNOWN_MAKER:
    'The request was made with an API key that no known member received, so no member can approve it. ' +
    'Regenerate that key as a signed-in owner or admin, and make the request again.',
  NEW_MEMBER: 'The caller joined the team or received a higher role less than 24 hours ago.',
  DECIDED: 'The caller has already approved the request.',
} as const
export type Obstacle = keyof typeof obstacles

/**
 * Returns the reason why the caller cannot approve the item now; null where the caller can. It is only for
 * display: the statement that approves checks everything again.
 */
export async function obstacleTo(ctx: Context, approvable: Approvable): Promise<Obstacle | null> {
  const { memberId, role } = ctx.actor ?? { memberId: null, role: null }
  const { waits, approvalExpiresAt, makers } = approvable
  if (!waits || approvalExpiresAt === null || approvalExpiresAt <= ctx.clock.now()) return 'NOT_WAITING'
  if (memberId === null || role === null) return 'NO_PERSON'
  if (!roles[role].approves) return 'ROLE'
  if (makers.includes(memberId)) return 'MAKER'
  if (makers.includes(0)) return 'UNKNOWN_MAKER'
  const [isNew, verdicts] = await Promise.all([isNewMember(ctx, memberId), verdictsOf(ctx, approvable)])
  if (isNew) return 'NEW_MEMBER'
  return verdicts.some((verdict) => verdict.memberId === memberId) ? 'DECIDED' : null
}

/** True if the approval of a member does not count yet. All members of one level share one statement. */
function isNewMember(ctx: Context, memberId: number): Promise<boolean> {
  const read = async (ids: readonly number[]) => {
    const { rows } = await ctx.database.merchantPool.query<{ id: number }>({
      name: 'approvers_by_now',
      text: 'SELECT id FROM team_member WHERE id = ANY ($1) AND merchant_id = $2 AND approver_since <= $3',
      values: [ids, mine(ctx).merchantId, approverSinceMax(ctx)],
    })
    return ids.map((id) => !rows.some((row) => row.id === id))
  }
  return loader(ctx, 'isNewMember', read).load(memberId)
}
