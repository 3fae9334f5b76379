import { actorOf } from '../../identity/actor.ts'
import type { Scope } from '../../identity/scopes.ts'
import type { Context } from '../../context.ts'

/** What may wait for people; what expires at one moment stands in this order. */
export const subjects = ['payout', 'batch', 'settings', 'deposit'] as const
export type ApprovalSubjectKind = (typeof subjects)[number]

/**
 * The scope that shows one. A change of the settings decides which payments need an approval: who approves
 * payouts sees and decides it.
 */
const scopes: Readonly<Record<ApprovalSubjectKind, Scope>> = {
  payout: 'payout',
  batch: 'bulk_pay',
  settings: 'payout',
  deposit: 'deposit',
}

/**
 * Who sees what waits for people.
 *
 * Choice: whoever may see one kind sees that one; only who may see neither is refused.
 */
export const seesApprovals = { anyOf: ['payout', 'bulk_pay', 'deposit'] } as const

/** The kinds that the caller may see. @throws DomainError UNAUTHENTICATED */
export function subjectsSeenBy(ctx: Pick<Context, 'actor'>): readonly ApprovalSubjectKind[] {
  const { scopes: granted } = actorOf(ctx)
  return subjects.filter((subject) => granted.has(scopes[subject]))
}
