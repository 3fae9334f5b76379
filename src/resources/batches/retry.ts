import { actorOf, callerOf, nameOf } from '../../identity/actor.ts'
import { recordingOf, recordMade } from '../../audit/audit-log.ts'
import { whyTurnedAway } from '../../identity/credentials.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { recipientsSeed } from '../../requests/identity.ts'
import { insertBatch, noSuchBatch } from './create.ts'

/**
 * Makes a draft of those who failed in a batch that has ended: who, how much and by which operator as there.
 *
 * Choice: one such draft, or another where it was cancelled before anybody was sent, so that nobody is
 * paid twice by two people who retry. Of one that was cancelled later those who failed are retried as of any
 * batch.
 * @throws DomainError NOT_FOUND, STATE_CONFLICT (not ended, nobody failed, retried already), UNAUTHENTICATED
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
      ctx.sequencer.notify()
      return { id: made.batchId }
  }
}
