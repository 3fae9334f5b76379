import { DomainError } from '../shared/errors.ts'
import { type Actor, actorOf } from './actor.ts'
import type { CredentialWatch } from './credentials.ts'

/** Who asks, as the statements that move money judge it. */
export type Caller = Pick<Actor, 'merchantId' | 'apiKeyId' | 'apiKeyVersion'>

/** @throws DomainError UNAUTHENTICATED where nobody is signed in */
export function callerOf(ctx: { actor: Actor | null }): Caller {
  const { merchantId, apiKeyId, apiKeyVersion } = actorOf(ctx)
  return { merchantId, apiKeyId, apiKeyVersion }
}

/** Whom the statement itself turned away hears why from a fresh look at the key and the account. */
export async function whyTurnedAway(ctx: {
  actor: Actor | null
  access: { credentials: CredentialWatch }
}): Promise<DomainError> {
  const actor = actorOf(ctx)
  const { credentials } = ctx.access
  credentials.forget(actor.apiKeyId)
  await credentials.check(actor)
  return new DomainError('UNAUTHENTICATED')
}
