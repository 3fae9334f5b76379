import { DomainError } from '../shared/errors.ts'
import { type Actor, actorOf } from './actor.ts'
import type { BlockedAddresses } from './blocked-addresses.ts'
import type { CredentialWatch } from './credentials.ts'
import { isAddressAllowed } from '../shared/ip-whitelist.ts'

/** The caller as the statements that move money judge it: by its key, its account and its address. */
export interface Caller extends Pick<Actor, 'merchantId' | 'apiKeyId' | 'apiKeyVersion'> {
  /** In canonical form; null where it is not known, and then no whitelist holds it. */
  clientAddress: string | null
}

/** @throws DomainError UNAUTHENTICATED where nobody is signed in */
export function callerOf(ctx: { actor: Actor | null; clientAddress: string | null }): Caller {
  const { merchantId, apiKeyId, apiKeyVersion } = actorOf(ctx)
  return { merchantId, apiKeyId, apiKeyVersion, clientAddress: ctx.clientAddress }
}

/**
 * Why a statement rejected its caller: reads the key, the account and the whitelist again.
 * @returns UNAUTHENTICATED or ADDRESS_NOT_ALLOWED
 * @throws DomainError UNAUTHENTICATED, ACCOUNT_INACTIVE
 */
export async function whyTurnedAway(ctx: {
  actor: Actor | null
  clientAddress: string | null
  access: { credentials: CredentialWatch; blocked: BlockedAddresses }
}): Promise<DomainError> {
  const actor = actorOf(ctx)
  const { credentials, blocked } = ctx.access
  credentials.forget(actor.apiKeyId)
  const { whitelist } = await credentials.check(actor)
  if (isAddressAllowed(whitelist, ctx.clientAddress)) return new DomainError('UNAUTHENTICATED')
  blocked.note(actor.merchantId, ctx.clientAddress)
  return new DomainError('ADDRESS_NOT_ALLOWED')
}
