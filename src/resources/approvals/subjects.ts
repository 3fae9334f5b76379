import { actorOf } from '../../identity/callers/actor.ts'
import type { Scope } from '../../identity/callers/scopes.ts'
import type { Context } from '../../context.ts'

/** The kinds of item that may wait for an approval, in the order in which lists sort equal expiry times. */
export const subjects = ['payout', 'batch', 'settings', 'deposit'] as const
export type ApprovalSubjectKind = (typeof subjects)[number]

/**
 * The scope that shows each kind. A change of the settings decides which payments need an approval, so a
 * caller who may see payouts may see it.
 */
const scopes: Readonly<Record<ApprovalSubjectKind, Scope>> = {
  payout: 'payout',
  batch: 'bulk_pay',
  settings: 'payout',
  deposit: 'deposit',
}

/**
 * The access rule of the list of waiting items.
 *
 * Choice: a caller sees the kinds that the caller's scopes show. A caller whose scopes show no kind is
 * refused.
 */
export const seesApprovals = { anyOf: ['payout', 'bulk_pay', 'deposit'] } as const

/** Returns the kinds that the caller may see. @throws DomainError UNAUTHENTICATED */
export function subjectsSeenBy(ctx: Pick<Context, 'actor'>): readonly ApprovalSubjectKind[] {
  const { scopes: granted } = actorOf(ctx)
  return subjects.filter((subject) => granted.has(scopes[subject]))
}
