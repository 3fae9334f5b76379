import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import { recordedChange, recordingOf } from '../../audit/audit-log.ts'
import { callerOf } from '../../identity/callers/actor.ts'
import { whyTurnedAway } from '../../identity/callers/credentials.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { noSuchBatch } from './create.ts'
import type { BatchStatus } from './states.ts'

/**
 * Cancels the unsent recipients of a batch: all recipients of a draft or of a batch that waits for approval,
 * and the recipients of a processing batch that are still `pending`. Their reserved money is available again.
 * Payments that operators already have end as the operators say, and the batch ends with the last of them; a
 * payment that provably reached no operator fails.
 * @throws DomainError NOT_FOUND, STATE_CONFLICT where the batch has ended or is being cancelled
 * @see docs/design/rules.md#batches
 */
export async function cancelBatch(ctx: Context, id: number): Promise<{ id: number }> {
  const { merchantId, apiKeyId, apiKeyVersion, clientAddress } = callerOf(ctx)
  // The function that cancels bypasses row-level security. This query does not: with it, row-level security
  // also checks that the batch belongs to the merchant.
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
        const [found] = await cancelOpenBatch(tx, {
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
  // An earlier try of the same request may have cancelled the batch already.
  const isOwn = ctx.idempotentOperation?.isResumed === true && ['cancelled', 'processing'].includes(status)
  if (!moved && !isOwn) {
    const words = status === 'processing' ? 'is already being cancelled' : `is ${status}`
    throw new DomainError('STATE_CONFLICT', `This batch ${words}. There is nothing to cancel.`)
  }
  return { id }
}

/** Cancels one batch; see cancel_batch.sql. */
export const cancelOpenBatch = sqlFunction('cancel_batch', {
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
