import { mine } from '../../identity/callers/actor.ts'
import { recordedChange, recordingOf } from '../../audit/audit-log.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { noSuchWebhook } from './find.ts'
import { sqlFunction } from '../../database/sql-function.ts'

const takeAway = sqlFunction('remove_webhook', {
  takes: { merchant: 'int', endpoint: 'int' },
  gives: 'boolean?',
})

/**
 * Removes an endpoint: the service sends no more events to it, and its slot is free again.
 * @throws DomainError NOT_FOUND
 * @see docs/design/rules.md#webhook-endpoints
 */
export async function removeWebhook(ctx: Context, webhookId: number): Promise<{ id: number }> {
  const { database, idempotentOperation } = ctx
  // A resumed request may have removed the endpoint already, before it was interrupted.
  const doneBefore = idempotentOperation?.isResumed ? [{ removedAt: { gte: idempotentOperation.since } }] : []
  const found = await database.prisma.webhookEndpoint.findFirst({
    where: { ...mine(ctx), id: webhookId, OR: [{ removedAt: null }, ...doneBefore] },
    select: { id: true, merchantId: true },
  })
  if (!found) throw noSuchWebhook()
  const isDone = await transact(
    asPlatform({ database }, 'the SQL function receives the id of the merchant'),
    (tx) =>
      recordedChange(tx, recordingOf(ctx, 'removeWebhook'), ['webhook', found.id], () =>
        takeAway(tx, { merchant: found.merchantId, endpoint: found.id }),
      ),
  )
  if (!isDone && doneBefore.length === 0) throw noSuchWebhook()
  return { id: found.id }
}
