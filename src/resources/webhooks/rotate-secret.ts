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

/**
 * Time after a rotation in which deliveries are signed with both secrets (see
 * docs/design/events.md#deliveries).
 */
const webhookOverlapMs = 24 * 3_600_000

/**
 * Gives an endpoint a new secret. For 24 hours its deliveries are also signed with the old secret, unless the
 * caller ends that now. A second rotation in this time keeps the same old secret for another 24 hours,
 * because the caller may have lost the new secret before the receiver got it; that lost secret ends at once.
 * @param oldEndsNow true if the old secret leaked
 * @returns the new secret; a repetition under the same `Idempotency-Key` gets the same one
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
      // The stored secret differs if this same request had rotated it before: then this run records nothing.
      if (kept?.secretEncrypted.equals(encrypted))
        await recordChange(tx, recordingOf(ctx, 'rotateWebhookSecret'), change)
      return kept
    },
  )
  if (!rotated) throw noSuchWebhook()
  return { id, secret: decryptWebhookSecret(master, { merchantId, id }, rotated.secretEncrypted) }
}
