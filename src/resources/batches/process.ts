import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import type { PoolClient } from 'pg'
import { actorOf, callerOf, nameOf } from '../../identity/callers/actor.ts'
import { recordedChange, recordingOf } from '../../audit/audit-log.ts'
import { whyTurnedAway } from '../../identity/callers/credentials.ts'
import { beyondKeyLimit } from '../../identity/keys/key-limits.ts'
import { dailyLimitOf, withinDailyLimit } from '../../identity/keys/daily-limit.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { dryRun, transact } from '../../database/transact.ts'
import { insufficientBalance } from '../../ledger/balance.ts'
import { DomainError } from '../../shared/errors.ts'
import { invalidInput } from '../../shared/input.ts'
import { refuseOtherLostPayments } from '../../requests/lost-payment.ts'
import { limits } from '../../shared/limits.ts'
import { noSuchBatch } from './create.ts'
import { type BatchChange, completePreview, previewBatch } from './preview.ts'
import type { BatchStatus } from './states.ts'

/** The reason why these functions bypass row-level security. */
const reason = 'the SQL function receives the id of the merchant'

/**
 * Begins to pay the recipients of a draft. It reserves the whole total first, or fails and changes nothing.
 * Then the recipients are sent (`batches/send.ts`), or the batch waits for approvals where the settings
 * require them.
 * @param expectedTotal the total that the caller was shown, in whole XOF; null for any
 * @throws DomainError NOT_FOUND, STATE_CONFLICT where the batch is not a draft or has another total, or where
 *   an operator made another payment under the identity of a recipient before a restore, INVALID_INPUT where
 *   it has no recipient or one with an operator that is not connected, LIMIT_EXCEEDED, PAYMENTS_OUT_HALTED,
 *   INSUFFICIENT_BALANCE (the batch stays a draft), UNAUTHENTICATED
 * @see docs/design/rules.md#batches
 */
export async function processBatch(
  ctx: Context,
  id: number,
  expectedTotal: bigint | null = null,
): Promise<{ id: number }> {
  await transact(asPlatform(ctx, reason), async (tx) => {
    await beginBatch(ctx, tx, id)
    await checkTotal(tx, id, expectedTotal)
  })
  ctx.notifyJob('payouts.due')
  return { id }
}

/**
 * Refuses a batch with another total than the one that was shown. No recipient can be added meanwhile: the
 * transaction has locked the batch.
 * @throws DomainError STATE_CONFLICT
 */
async function checkTotal(tx: PoolClient, id: number, expectedTotal: bigint | null): Promise<void> {
  if (expectedTotal === null) return
  const { rows } = await tx.query<{ total: string }>({
    name: 'total_of_batch',
    text: 'SELECT total_amount::text AS total FROM batch WHERE id = $1',
    values: [id],
  })
  const total = BigInt(rows[0]?.total ?? 0)
  if (total === expectedTotal) return
  const words = `The total of this batch is ${total} XOF, not ${expectedTotal} XOF. Read the batch again.`
  throw new DomainError('STATE_CONFLICT', words)
}

/**
 * Begins the batch in a transaction that is rolled back, and returns the preview: nothing is written.
 * @throws as `processBatch`
 */
export async function dryRunProcess(
  ctx: Context,
  id: number,
  expectedTotal: bigint | null = null,
): Promise<BatchChange> {
  const base = await dryRun(asPlatform(ctx, reason), async (tx) => {
    const before = await previewBatch(ctx, tx, id)
    const becomes = await beginBatch(ctx, tx, id)
    await checkTotal(tx, id, expectedTotal)
    return before && { ...before, approvalRequired: becomes === 'pending_approval' }
  })
  return { id, forecast: await completePreview(ctx, base) }
}

/**
 * Begins a batch in the transaction of the calling function, with its entry in the audit log.
 * @returns the new status of the batch
 * @throws as `processBatch`
 */
export async function beginBatch(ctx: Context, tx: PoolClient, id: number): Promise<BatchStatus> {
  const { merchantId, apiKeyId, apiKeyVersion, clientAddress } = callerOf(ctx)
  const actor = actorOf(ctx)
  const dailyLimit = dailyLimitOf(actor)
  const work = async () => {
    const [found] = await processDraft(tx, {
      merchant: merchantId,
      credential: apiKeyId,
      credentialVersion: apiKeyVersion,
      asker: nameOf(actor),
      batch: id,
      approvalMs: limits.approvalLifetimeMs,
      connected: ctx.operators.list().map(({ provider }) => provider),
      paymentMax: actor.keyLimits?.maxPerPayment,
      operators: actor.keyLimits?.paymentMethods ?? null,
      token: dailyLimit?.tokenId,
      dayMax: dailyLimit?.maxPerDay,
      address: clientAddress,
    })
    const begins = found?.outcome === 'processing' || found?.outcome === 'pending_approval'
    if (begins) await refuseOtherLostPayments(tx, id)
    return found
  }
  const recording = recordingOf(ctx, 'processBatch')
  const begun = await withinDailyLimit(recordedChange(tx, recording, ['batch', id], work))
  if (!begun) throw noSuchBatch()
  const { outcome, status } = begun
  switch (outcome) {
    case 'processing':
    case 'pending_approval':
      return outcome
    case 'unauthenticated':
      throw await whyTurnedAway(ctx)
    case 'conflict':
      // An earlier try of the same request may have begun the batch already.
      if (ctx.idempotentOperation?.isResumed && status !== 'cancelled') return status
      throw new DomainError('STATE_CONFLICT', `Only a draft can be processed: this batch is ${status}.`)
    case 'empty':
      throw invalidInput([{ field: 'recipients', message: 'must not be empty' }])
    case 'unconnected':
      throw invalidInput([
        {
          field: 'recipients',
          message:
            'must all have a connected operator: make a new batch without those whose operator is gone',
        },
      ])
    case 'beyond_operators':
      throw beyondKeyLimit(actor.keyLimits, 'paymentMethods')
    case 'beyond_payment':
      throw beyondKeyLimit(actor.keyLimits, 'maxPerPayment')
    case 'halted':
      throw new DomainError('PAYMENTS_OUT_HALTED')
    case 'short':
      throw await insufficientBalance(ctx.database.merchantPool, merchantId)
  }
}

type Outcome =
  | 'processing'
  | 'pending_approval'
  | 'unauthenticated'
  | 'conflict'
  | 'empty'
  | 'unconnected'
  | 'beyond_operators'
  | 'beyond_payment'
  | 'halted'
  | 'short'

/** Reserves the money of a draft, and starts the batch or lets it wait for approvals. */
export const processDraft = sqlFunction('process_batch', {
  takes: {
    merchant: 'int',
    credential: 'int',
    credentialVersion: 'int',
    asker: 'text',
    batch: 'int',
    approvalMs: 'bigint',
    connected: 'provider[]',
    paymentMax: 'bigint?',
    operators: 'provider[]?',
    token: 'uuid?',
    dayMax: 'bigint?',
    address: 'text?',
  },
  gives: { outcome: sqlType<Outcome>('text'), status: sqlType<BatchStatus>('batch_status') },
})
