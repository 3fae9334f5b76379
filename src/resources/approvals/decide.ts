import { z } from 'zod'
import { asPlatform } from '../../database/as-platform.ts'
import { type Actor, actorOf, callerOf } from '../../identity/callers/actor.ts'
import { recordingOf, recordingType } from '../../audit/audit-log.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import { whyTurnedAway } from '../../identity/callers/credentials.ts'
import { roles } from '../../identity/members/roles.ts'
import type { Context } from '../../context.ts'
import { DomainError } from '../../shared/errors.ts'
import { readInput, text } from '../../shared/input.ts'
import type { ApprovalStatus } from './states.ts'
import type { ApprovalSubjectKind } from './subjects.ts'

const rejectionReasonLengthMax = 200

const digits = 'must be the digest of the approval that you saw: 64 hexadecimal digits'
const approveInput = z.object({ digest: z.string(digits).regex(/^[0-9a-f]{64}$/i, digits) })
const rejectInput = z.object({ reason: text({ min: 1, max: rejectionReasonLengthMax }) })

/**
 * Approves a payout, a batch, a deposit or a change of the settings that waits for an approval. The last
 * required approval releases it: a payment that is due is sent, a change of the settings takes effect. When
 * the last approval comes, earlier ones count only if their members may still approve: they are active, their
 * role approves, and it was not raised in the last 24 hours.
 * @param digest the digest of the item that the caller was shown
 * @returns the id of the item
 * @throws DomainError FORBIDDEN (an API key; a role that does not approve; a member who made the item or
 *   added recipients to it, also by an API key that the member received; every member, if it is not known
 *   who received that key; a member who joined or got a higher role within 24 hours), INVALID_INPUT,
 *   NOT_FOUND, STATE_CONFLICT (another digest, no longer waiting, approved before by the same member)
 * @see docs/design/rules.md#approvals
 */
export async function approve(
  ctx: Context,
  subject: ApprovalSubjectKind,
  id: bigint,
  digest: string,
): Promise<bigint> {
  checkApproves(subject, actorOf(ctx))
  const input = readInput(approveInput, { digest })
  const shown = Buffer.from(input.digest, 'hex')
  const approval = await decide(ctx, subject, id, { to: 'approved', shown, reason: null })
  if (approval === 'approved') ctx.notifyJob('payouts.due')
  return id
}

/**
 * Rejects an item that waits for an approval; one rejection is enough. A rejected payment is cancelled and
 * its reserved money is available again. A rejected change of the settings does not happen; its maker may
 * reject it too.
 * @param reason 1 to 200 characters; the event contains it
 * @returns the id of the item
 * @throws DomainError FORBIDDEN (an API key; a role that does not approve; the maker of a payment),
 *   INVALID_INPUT, NOT_FOUND, STATE_CONFLICT (no longer waiting, rejected before by the same member)
 * @see docs/design/rules.md#approvals
 */
export async function reject(
  ctx: Context,
  subject: ApprovalSubjectKind,
  id: bigint,
  reason: string,
): Promise<bigint> {
  checkApproves(subject, actorOf(ctx))
  const input = readInput(rejectInput, { reason })
  await decide(ctx, subject, id, { to: 'rejected', shown: null, reason: input.reason })
  return id
}

interface Decision {
  to: Extract<ApprovalStatus, 'approved' | 'rejected'>
  shown: Buffer | null
  reason: string | null
}

const kinds = {
  payout: { type: 'Payout', one: 'payout', many: 'payouts' },
  batch: { type: 'Batch', one: 'batch', many: 'batches' },
  settings: {
    type: 'SettingsChange',

    one: 'change of the settings',
    many: 'changes of the settings',
  },
  deposit: {
    type: 'Transaction',

    one: 'deposit',
    many: 'deposits',
  },
} as const satisfies Record<ApprovalSubjectKind, object>

/** Records a decision. The statement reads and checks the caller and the item again, under its locks. */
async function decide(
  ctx: Context,
  subject: ApprovalSubjectKind,
  id: bigint,
  { to, shown, reason }: Decision,
): Promise<ApprovalStatus> {
  const { merchantId, apiKeyId, apiKeyVersion, clientAddress } = callerOf(ctx)
  const { type, one } = kinds[subject]
  const operation = `${to === 'approved' ? 'approve' : 'reject'}${subject === 'deposit' ? 'Deposit' : type}`
  const { pool } = asPlatform(ctx, 'the SQL function receives the id of the merchant')
  const [decided] = await decideWaiting(pool, {
    merchant: merchantId,
    subject,
    id,
    credential: apiKeyId,
    credentialVersion: apiKeyVersion,
    decided: to,
    shown,
    why: reason,
    recording: recordingOf(ctx, operation),
    address: clientAddress,
  })
  if (!decided) throw new DomainError('NOT_FOUND', `There is no such ${one}.`)
  const { outcome, approval } = decided
  if (outcome === 'no_person') throw await whyTurnedAway(ctx)
  // An earlier try of the same request may have recorded the decision already.
  const isOwn = outcome === 'repeated' && ctx.idempotentOperation?.isResumed === true
  if (outcome !== 'counted' && !isOwn) throw refusal(outcome, subject)
  return approval
}

const decideWaiting = sqlFunction('decide_waiting', {
  takes: {
    merchant: 'int',
    subject: 'text',
    id: 'bigint',
    credential: 'int',
    credentialVersion: 'int',
    decided: sqlType<Decision['to']>('approval_status'),
    shown: 'bytea?',
    why: 'text?',
    recording: recordingType,
    address: 'text?',
  },
  gives: {
    outcome: sqlType<'counted' | 'no_person' | Problem>('text'),
    approval: sqlType<ApprovalStatus>('approval_status'),
  },
})

type Problem = 'role' | 'maker' | 'over' | 'expired' | 'changed' | 'repeated' | 'unknown_maker' | 'new_member'

/** Returns the error for a decision that did not count. */
function refusal(problem: Problem, subject: ApprovalSubjectKind): DomainError {
  const { one, many } = kinds[subject]
  switch (problem) {
    case 'role':
      return new DomainError('FORBIDDEN', `Your role cannot decide about ${many}.`)
    case 'maker':
      return new DomainError(
        'FORBIDDEN',
        'Another member must decide: you or the owner of your API key made the request.',
      )
    case 'unknown_maker':
      return new DomainError(
        'FORBIDDEN',
        'The request was made with an API key that no known member received, so no member can approve it. ' +
          `Reject this ${one}, regenerate the API key as a signed-in owner or admin, and ` +
          'make the request again.',
      )
    case 'new_member':
      return new DomainError(
        'FORBIDDEN',
        'You joined the team or got a higher role less than 24 hours ago. Another member must decide.',
      )
    case 'over':
      return new DomainError('STATE_CONFLICT', `This ${one} does not wait for approval.`)
    case 'expired':
      return new DomainError('STATE_CONFLICT', `This ${one} was not approved in time.`)
    case 'changed':
      return new DomainError(
        'STATE_CONFLICT',
        subject === 'settings'
          ? 'The digest does not match, or the settings have changed since. Request the change again.'
          : `The digest does not match. Read this ${one} again, and send its present digest.`,
      )
    case 'repeated':
      return new DomainError('STATE_CONFLICT', `You have already decided about this ${one}.`)
  }
}

/**
 * Refuses a caller who can never decide, before the rest of the request is checked.
 * @throws DomainError FORBIDDEN
 */
function checkApproves(subject: ApprovalSubjectKind, { role }: Actor): void {
  if (role === null) {
    const { many } = kinds[subject]
    throw new DomainError('FORBIDDEN', `Only a signed-in member can decide about ${many}, not an API key.`)
  }
  if (!roles[role].approves) throw refusal('role', subject)
}
