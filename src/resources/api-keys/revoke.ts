import { actorOf } from '../../identity/callers/actor.ts'
import { recordedChange, recordingOf } from '../../audit/audit-log.ts'
import { revokeApiKey } from '../../identity/keys/api-keys.ts'
import type { Context } from '../../context.ts'
import { asIssuer } from './issue.ts'

/**
 * Revokes an API key and its tokens for ever: at once for payments, within a second for all other requests.
 * A repetition changes nothing. The calling key can revoke itself.
 * @throws DomainError NOT_FOUND, UNAUTHENTICATED
 */
export async function revokeMerchantKey(ctx: Context, apiKeyId: number): Promise<number> {
  const { merchantId } = actorOf(ctx)
  await asIssuer(ctx, (tx) =>
    recordedChange(tx, recordingOf(ctx, 'revokeApiKey'), ['api_key', apiKeyId], () =>
      revokeApiKey(tx, { merchantId, apiKeyId }),
    ),
  )
  ctx.access.credentials.forget(apiKeyId)
  // Record the revocation outside the database before the caller relies on it: a restored backup must not
  // make the key valid again.
  await ctx.restores.record()
  return apiKeyId
}
