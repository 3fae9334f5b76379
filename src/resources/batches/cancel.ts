import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import { recordedChange, recordingOf } from '../../audit/audit-log.ts'
import { callerOf } from '../../identity/actor.ts'
import { whyTurnedAway } from '../../identity/credentials.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { noSuchBatch } from './create.ts'
import type { BatchStatus } from './states.ts'

/**
 * Cancels what was not sent of a batch: all of a draft, or of what waits for approval; of one that is
 * processed those whose turn has not come. What was set aside for them is free again. Those at their
 * operators end as these say, and the batch with the last of them; whom no operator was reached for fails.
 * @throws DomainError NOT_FOUND, STATE_CONFLICT where it has ended or is being cancelled
 * @see specification: POST /bulk/batches/{id}/cancel
 */
export async function cancelBatch(ctx: Context, id: number): Promise<{ id: number }> {
  const { merchantId, apiKeyId, apiKeyVersion, clientAddress } = callerOf(ctx)
  // Row-level security sees to it as well that it is theirs; the function that cancels stands above it.
  const theirs = await ctx.database.merchantPool.query({
    name: 'own_batch',
    text: 'SELECT FROM batch WHERE id = $1 AND merchant_id = $2',
    values: [id, merchantId],
  })
  if (theirs.rowCount === 0) throw noSuchBatch()
  const cancelled = await transact(
    asPlatform(ctx, 'the SQL function receives the id of the merchant'),
    (tx) =>
      recordedChange(tx, recordingOf(ctx, 'cancelBatch'), ['batch', id], async () => {
        const [found] = await cancelOne(tx, {
          merchant: merchantId,
          batch: id,
          becomes: null,
          why: {},
          credential: apiKeyId,
          credentialVersion: apiKeyVersion,
          address: clientAddress,
        })
        return found
      }),
  )
  if (!cancelled) throw noSuchBatch()
  const { moved, status } = cancelled
  if (moved === null) throw await whyTurnedAway(ctx)
  // A request that goes on with what it began may have done it already.
  const isOwn = ctx.idempotentOperation?.isResumed === true && ['cancelled', 'processing'].includes(status)
  if (!moved && !isOwn) {
    const words = status === 'processing' ? 'is already being cancelled' : `is ${status}`
    throw new DomainError('STATE_CONFLICT', `This batch ${words}. There is nothing to cancel.`)
  }
  ctx.sequencer.notify()
  return { id }
}

const cancelOne = sqlFunction('cancel_batch', {
  takes: {
    merchant: 'int',
    batch: 'int',
    becomes: sqlType<null>('approval_status?'),
    why: 'jsonb',
    credential: 'int',
    credentialVersion: 'int',
    address: 'text?',
  },
  gives: {
    moved: 'boolean?',
    was: sqlType<BatchStatus>('batch_status'),
    status: sqlType<BatchStatus>('batch_status'),
  },
})
