import { actorOf } from '../../identity/actor.ts'
import { recordedChange, recordingOf } from '../../audit/audit-log.ts'
import { revokeApiKey } from '../../identity/api-keys.ts'
import type { Context } from '../../context.ts'
import { asIssuer } from './issue.ts'

/**
 * Ends a key and its tokens for ever: at once for money, within a second for all else. Doing it again changes
 * nothing. Also the key that calls can be ended.
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
  // Written down outside of the database before the caller relies on it: a restore must not revive the key.
  await ctx.restores.record()
  return apiKeyId
}
