import { DomainError } from '../shared/errors.ts'
import type { KeyLimitSet } from './key-limits.ts'
import type { Role } from './roles.ts'
import type { Scope } from './scopes.ts'

/** Who is calling: an API key of one merchant, or a person who signed in. */
export interface Actor {
  merchantId: number
  /** The credential behind the token: a key, or a session. */
  apiKeyId: number
  /** Its version when the token was made; regenerating a key ends it. */
  apiKeyVersion: number
  scopes: ReadonlySet<Scope>
  /** What the token is limited to; null where to nothing, and for a person. */
  keyLimits: KeyLimitSet | null
  tokenId: string
  expiresAt: Date
  /** The person; null where a program calls with an API key. */
  memberId: number | null
  /** The role of the person at this moment. */
  role: Role | null
  /** Its role sees, and changes nothing. */
  readsOnly: boolean
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

/** How records name who did something: `member:7`, `api_key:12`. */
export function nameOf({ memberId, apiKeyId }: Pick<Actor, 'memberId' | 'apiKeyId'>): string {
  return memberId === null ? `api_key:${apiKeyId}` : `member:${memberId}`
}

/** The caller as the statements that move money judge it: by its key, its account and its address. */
export interface AccountCaller extends Pick<Actor, 'merchantId' | 'apiKeyId' | 'apiKeyVersion'> {
  /** In canonical form; null where it is not known, and then no whitelist holds it. */
  clientAddress: string | null
}

/** @throws DomainError UNAUTHENTICATED where nobody is signed in */
export function callerOf(ctx: { actor: Actor | null; clientAddress: string | null }): AccountCaller {
  const { merchantId, apiKeyId, apiKeyVersion } = actorOf(ctx)
  return { merchantId, apiKeyId, apiKeyVersion, clientAddress: ctx.clientAddress }
}
