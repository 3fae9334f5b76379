import { readSmallId } from '../../shared/ids.ts'
import type { KeyLimitSet } from '../keys/key-limits.ts'
import { unauthenticated } from '../../shared/challenge.ts'
import type { Role } from '../members/roles.ts'
import type { Scope } from './scopes.ts'

/** The caller: an API key of one merchant, or a person who signed in. */
export interface Actor {
  merchantId: number
  /** The id of the credential behind the token: an API key, or a session. */
  apiKeyId: number
  /** The version of the credential when the token was made; regenerating a key ends its tokens. */
  apiKeyVersion: number
  scopes: ReadonlySet<Scope>
  /** The limits of the token; null where it has none, and for a person. */
  keyLimits: KeyLimitSet | null
  tokenId: string
  expiresAt: Date
  /** The id of the person; null where a program calls with an API key. */
  memberId: number | null
  /** The role that the person has at this moment; null for an API key. */
  role: Role | null
  /** Whether the role may only read. */
  readsOnly: boolean
}

/**
 * Returns the merchant of the caller. Every read and write is bound to its merchant by this function: spread
 * the result into every `where` and `data`.
 * @throws DomainError UNAUTHENTICATED for an anonymous caller
 */
export function mine(ctx: { actor: Actor | null }): { merchantId: number } {
  return { merchantId: actorOf(ctx).merchantId }
}

/** Returns the signed-in caller. @throws DomainError UNAUTHENTICATED for an anonymous caller */
export function actorOf(ctx: { actor: Actor | null }): Actor {
  if (!ctx.actor) throw unauthenticated('missing')
  return ctx.actor
}

/** Returns the caller's merchant if a global id of this type names it; else -1, which no merchant has. */
export function ownMerchantId(ctx: { actor: Actor | null }, type: string, id: string): number {
  const { merchantId } = mine(ctx)
  return readSmallId(type, id) === merchantId ? merchantId : -1
}

/** Returns the name of an actor in records: `member:7`, `api_key:12`. */
export function nameOf({ memberId, apiKeyId }: Pick<Actor, 'memberId' | 'apiKeyId'>): string {
  return memberId === null ? `api_key:${apiKeyId}` : `member:${memberId}`
}

/** The caller as the statements that move money check it: by its key, its account and its address. */
export interface AccountCaller extends Pick<Actor, 'merchantId' | 'apiKeyId' | 'apiKeyVersion'> {
  /** The address in canonical form; null where it is not known: only an empty whitelist allows that. */
  clientAddress: string | null
}

/**
 * Returns the caller (key, account, address) for the statements that move money.
 * @throws DomainError UNAUTHENTICATED for an anonymous caller
 */
export function callerOf(ctx: { actor: Actor | null; clientAddress: string | null }): AccountCaller {
  const { merchantId, apiKeyId, apiKeyVersion } = actorOf(ctx)
  return { merchantId, apiKeyId, apiKeyVersion, clientAddress: ctx.clientAddress }
}
