import { z } from 'zod'
import { recordedChange, recordingOf } from '../../audit/audit-log.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { readInput, replaced } from '../../shared/input.ts'
import { checkWebhookUrl } from './address.ts'
import { findWebhook, noSuchWebhook } from './find.ts'
import { webhookFields } from './register.ts'
import { sqlFunction } from '../../database/sql-function.ts'

const changeWebhook = sqlFunction('change_webhook', {
  takes: { merchant: 'int', endpoint: 'int', address: 'text?', names: 'text[]?', active: 'boolean?' },
  gives: 'boolean',
})

export const updateWebhookInput = z.object({
  url: replaced(webhookFields.url),
  events: replaced(webhookFields.events),
  isActive: replaced(z.boolean('must be true or false')),
})
type UpdateWebhookInput = z.input<typeof updateWebhookInput>

/**
 * Changes the given fields of an endpoint and leaves the others as they are. When an endpoint is enabled, or
 * an active one gets a new address, its count of failures becomes zero, and waiting events are sent at once,
 * in order. While an endpoint is inactive, new events wait for it.
 * @throws DomainError INVALID_INPUT, NOT_FOUND
 * @see docs/design/rules.md#webhook-endpoints
 */
export async function updateWebhook(
  ctx: Context,
  webhookId: number,
  raw: UpdateWebhookInput,
): Promise<{ id: number }> {
  const input = readInput(updateWebhookInput, raw)
  const { id, merchantId } = await findWebhook(ctx, webhookId)
  const url = input.url === undefined ? null : await checkWebhookUrl(input.url, ctx.config)
  const isThere = await transact(asPlatform(ctx, 'the SQL function receives the id of the merchant'), (tx) =>
    recordedChange(tx, recordingOf(ctx, 'updateWebhook'), ['webhook', id], () =>
      changeWebhook(tx, {
        merchant: merchantId,
        endpoint: id,
        address: url,
        names: input.events,
        active: input.isActive,
      }),
    ),
  )
  if (!isThere) throw noSuchWebhook()
  return { id }
}
