import { actorOf, callerOf, nameOf } from '../../identity/callers/actor.ts'
import { recordingOf, recordMade } from '../../audit/audit-log.ts'
import { whyTurnedAway } from '../../identity/callers/credentials.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { recipientsSeed } from '../../requests/identity.ts'
import { insertBatch, noSuchBatch } from './create.ts'

/**
 * Creates a draft with the failed recipients of a batch that has ended, with the same names, accounts,
 * amounts and operators.
 *
 * Choice: a batch has one such draft, and another one only where the first was cancelled before any of its
 * recipients was paid or failed. So two people who retry cannot pay a recipient twice. A retry that was
 * cancelled later is itself a batch that has ended: its failed recipients can be retried from it.
 * @throws DomainError NOT_FOUND, STATE_CONFLICT (the batch has not ended, has no failed recipient, or was
 *   retried already), UNAUTHENTICATED
 */
export async function retryFailed(ctx: Context, batchId: number): Promise<{ id: number }> {
  const { merchantId, apiKeyId, apiKeyVersion } = callerOf(ctx)
  const made = await transact(
    asPlatform(ctx, 'the SQL function receives the id of the merchant'),
    async (tx) => {
      const [row] = await insertBatch(tx, {
        merchant: merchantId,
        credential: apiKeyId,
        credentialVersion: apiKeyVersion,
        maker: nameOf(actorOf(ctx)),
        operationId: ctx.idempotentOperation?.id,
        title: null,
        method: null,
        names: null,
        accounts: null,
        amounts: null,
        methods: null,
        retried: batchId,
        seed: recipientsSeed(ctx),
      })
      if (row?.outcome === 'made') {
        await recordMade(tx, recordingOf(ctx, 'retryFailed'), ['batch', row.batchId])
      }
      return row
    },
  )
  if (!made) throw noSuchBatch()
  switch (made.outcome) {
    case 'unauthenticated':
      throw await whyTurnedAway(ctx)
    case 'open':
      throw new DomainError('STATE_CONFLICT', 'Only a batch that has ended can be retried.')
    case 'nothing':
      throw new DomainError('STATE_CONFLICT', 'No recipient of this batch failed.')
    case 'retried':
      throw new DomainError('STATE_CONFLICT', `The failed recipients are already in batch ${made.batchId}.`)
    case 'made':
    case 'repeated':
      return { id: made.batchId }
  }
}
