import { recordChange, recordingOf } from '../../audit/audit-log.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { findWebhook, noSuchWebhook } from './find.ts'
import type { WebhookWithSecret } from './register.ts'
import { decryptWebhookSecret, encryptWebhookSecret } from './secrets.ts'
import { newWebhookSecret } from './sign.ts'
import { sqlFunction } from '../../database/sql-function.ts'

const replaceSecret = sqlFunction('rotate_webhook_secret', {
  takes: { merchant: 'int', endpoint: 'int', encrypted: 'bytea', operationId: 'text?', overlapMs: 'bigint' },
  gives: { secretEncrypted: 'bytea' },
})

/** After a rotation deliveries are signed with both secrets for so long (issue: webhooks). */
const webhookOverlapMs = 24 * 3_600_000

/**
 * Gives an endpoint a new secret. For 24 hours its deliveries are signed with the old one too, unless that
 * ends now. Rotated again in that time, the old one stays the same: whoever lost the new one before its
 * receiver had it asks for another.
 * @param oldEndsNow where the old one leaked
 * @returns the new secret; begun again under its `Idempotency-Key`, the same one
 * @throws DomainError NOT_FOUND
 */
export async function rotateWebhookSecret(
  ctx: Context,
  webhookId: number,
  oldEndsNow: boolean,
): Promise<WebhookWithSecret> {
  const { id, merchantId } = await findWebhook(ctx, webhookId)
  const { master } = ctx.access
  const encrypted = encryptWebhookSecret(master, { merchantId, id }, newWebhookSecret())
  const rotated = await transact(
    asPlatform(ctx, 'no merchant may read a secret; the SQL function receives the id of the merchant'),
    async (tx) => {
      const [kept] = await replaceSecret(tx, {
        merchant: merchantId,
        endpoint: id,
        encrypted,
        operationId: ctx.idempotentOperation?.id ?? null,
        overlapMs: oldEndsNow ? 0 : webhookOverlapMs,
      })
      const change = { target: ['webhook', id], after: { old_secret_ended: oldEndsNow } } as const
      // Another one: the same request had rotated it before.
      if (kept?.secretEncrypted.equals(encrypted))
        await recordChange(tx, recordingOf(ctx, 'rotateWebhookSecret'), change)
      return kept
    },
  )
  if (!rotated) throw noSuchWebhook()
  return { id, secret: decryptWebhookSecret(master, { merchantId, id }, rotated.secretEncrypted) }
}
