import { DomainError } from '../shared/errors.ts'
import type { Scope } from './scopes.ts'

/** Who is calling: one API key of one merchant, as its verified token says. */
export interface Actor {
  merchantId: number
  apiKeyId: number
  /** The key's version when the token was made; regenerating the key ends it. */
  apiKeyVersion: number
  scopes: ReadonlySet<Scope>
  tokenId: string
  expiresAt: Date
}

/**
 * The one place that binds a read or a write to its merchant: spread it into every `where` and `data`.
 * @throws DomainError UNAUTHENTICATED where nobody is signed in
 */
export function mine(ctx: { actor: Actor | null }): { merchantId: number } {
  return { merchantId: actorOf(ctx).merchantId }
}

/** @throws DomainError UNAUTHENTICATED where nobody is signed in */
export function actorOf(ctx: { actor: Actor | null }): Actor {
  if (!ctx.actor) throw new DomainError('UNAUTHENTICATED')
  return ctx.actor
}
