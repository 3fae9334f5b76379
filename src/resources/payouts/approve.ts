import { z } from 'zod'
import { type Actor, actorOf } from '../../access/actor.ts'
import { manyParameters, recordingOf, recordManySql } from '../../access/audit-log.ts'
import { callerOf, whyTurnedAway } from '../../access/caller.ts'
import { roles } from '../../access/roles.ts'
import type { Context } from '../../context.ts'
import { readId } from '../../graphql/ids.ts'
import { DomainError } from '../../shared/errors.ts'
import { readInput, text } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import type { ApprovalStatus, PayoutStatus } from './states.ts'

const digits = 'must be the 64 hexadecimal digits of the approval that you saw'
const approvePayoutInput = z.object({ digest: z.string(digits).regex(/^[0-9a-f]{64}$/i, digits) })
const rejectPayoutInput = z.object({ reason: text({ min: 1, max: limits.rejectionReasonLengthMax }) })

/**
 * Approves a payout that waits for people. The last approval that is needed lets it go: what is due is sent.
 * Approvals count by people who may still give one when the last comes: one by somebody who was removed since
 * counts no more.
 * @param rawId a global id, or the id of REST
 * @param digest of what the caller was shown
 * @returns the payout
 * @throws DomainError FORBIDDEN (an API key, a viewer, whoever asked for it, whoever holds the key that did),
 *   INVALID_INPUT, NOT_FOUND, STATE_CONFLICT (another digest, no longer waiting, approved by the same person)
 * @see decisions: Money and states
 */
export async function approvePayout(ctx: Context, rawId: string, digest: string): Promise<{ id: bigint }> {
  checkApproves(actorOf(ctx))
  const input = readInput(approvePayoutInput, { digest })
  const shown = Buffer.from(input.digest, 'hex')
  const decided = await decide(ctx, rawId, { to: 'approved', shown, reason: null })
  if (decided.approval === 'approved') ctx.wakeJob('payouts.due')
  return decided
}

/**
 * Rejects a payout that waits for people: it is cancelled, and its money free again. One is enough.
 * @param rawId a global id, or the id of REST
 * @param reason 1 to 200 characters; the log tells it
 * @returns the payout, `cancelled`
 * @throws DomainError as `approvePayout`
 * @see decisions: Money and states
 */
export async function rejectPayout(ctx: Context, rawId: string, reason: string): Promise<{ id: bigint }> {
  checkApproves(actorOf(ctx))
  const input = readInput(rejectPayoutInput, { reason })
  return decide(ctx, rawId, { to: 'rejected', shown: null, reason: input.reason })
}

interface Decision {
  to: Extract<ApprovalStatus, 'approved' | 'rejected'>
  shown: Buffer | null
  reason: string | null
}

interface Decided {
  outcome: 'counted' | 'no_person' | keyof typeof problems
  approval: ApprovalStatus
  status: PayoutStatus
}

/** The statement itself judges who it is and what waits: nothing that was read before it counts. */
async function decide(
  ctx: Context,
  rawId: string,
  { to, shown, reason }: Decision,
): Promise<{ id: bigint; approval: ApprovalStatus }> {
  const { merchantId, apiKeyId, apiKeyVersion } = callerOf(ctx)
  const id = readId('Payout', rawId)
  const operation = to === 'approved' ? 'approvePayout' : 'rejectPayout'
  const entry = manyParameters([recordingOf(ctx, operation)])
  const { rows } = await ctx.database.pool.query<Decided>({
    name: 'decide_payout',
    text: `WITH decided AS MATERIALIZED (
        SELECT outcome, approval, status FROM decide_payout($1, $2, $3, $4, $5, $6, $7)),
      ${recordManySql(8, decidedEntry)}
      SELECT outcome, approval, status FROM decided`,
    values: [merchantId, id, apiKeyId, apiKeyVersion, to, shown, reason, ...entry],
  })
  const [decided] = rows
  if (!decided) throw new DomainError('NOT_FOUND', 'There is no such payout.')
  const { outcome, approval } = decided
  if (outcome === 'no_person') throw await whyTurnedAway(ctx)
  // A request that goes on with what it began may have done it already.
  const isOwn = outcome === 'repeated' && ctx.effect?.isResumed === true
  if (outcome !== 'counted' && !isOwn) throw refusal(outcome)
  ctx.sequencer.nudge()
  return { id, approval }
}

const decidedEntry = `SELECT 1, 'payout:' || $2, '{"approval":"pending"}'::jsonb,
  jsonb_strip_nulls(jsonb_build_object('approval', approval, 'verdict', $5, 'reason', $7))
  FROM decided WHERE outcome = 'counted'`

/** Why a decision did not count. */
const problems = {
  role: ['FORBIDDEN', 'Your role decides about no payouts.'],
  maker: ['FORBIDDEN', 'Somebody else decides: you asked for it, or were shown the API key that did.'],
  over: ['STATE_CONFLICT', 'This payout does not wait for approval, or no longer.'],
  expired: ['STATE_CONFLICT', 'Nobody approved this payout in time.'],
  changed: ['STATE_CONFLICT', 'The digest is of something else: read the payout again, and what it is now.'],
  repeated: ['STATE_CONFLICT', 'You have decided about this payout already.'],
} as const

function refusal(problem: keyof typeof problems): DomainError {
  const [code, words] = problems[problem]
  return new DomainError(code, words)
}

/** Before anything of the request is judged. @throws DomainError FORBIDDEN */
function checkApproves({ role }: Actor): void {
  if (role === null) {
    throw new DomainError('FORBIDDEN', 'Only somebody who signed in decides about payouts, no API key.')
  }
  if (!roles[role].approves) throw refusal('role')
}
