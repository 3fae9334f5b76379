import { asPlatform } from '../../database/as-platform.ts'
import { recordingOf, recordingType } from '../../audit/audit-log.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import { callerOf } from '../../identity/callers/actor.ts'
import { whyTurnedAway } from '../../identity/callers/credentials.ts'
import type { Context } from '../../context.ts'
import { DomainError } from '../../shared/errors.ts'
import type { PayoutStatus } from './states.ts'

/**
 * Cancels a payout that has not begun and makes its reserved money available again. If the payout begins at
 * the same moment, the lock on its row decides which of the two comes first.
 * @returns the id of the payout, which is now `cancelled`
 * @throws DomainError NOT_FOUND, STATE_CONFLICT where it has begun or ended
 */
export async function cancelPayout(ctx: Context, id: bigint): Promise<{ id: bigint }> {
  const { merchantId, apiKeyId, apiKeyVersion, clientAddress } = callerOf(ctx)
  // The SQL function `cancel_payout` bypasses row-level security. This query does not: it checks a second
  // time that the payout belongs to the caller's merchant.
  const theirs = await ctx.database.merchantPool.query({
    name: 'own_payout',
    text: 'SELECT FROM payout WHERE id = $1 AND merchant_id = $2',
    values: [id, merchantId],
  })
  if (theirs.rowCount === 0) throw noSuchPayout()
  const { pool } = asPlatform(ctx, 'the SQL function receives the id of the merchant')
  const [found] = await cancelPendingPayout(pool, {
    merchant: merchantId,
    payout: id,
    recording: recordingOf(ctx, 'cancelPayout'),
    credential: apiKeyId,
    credentialVersion: apiKeyVersion,
    address: clientAddress,
  })
  if (!found) throw noSuchPayout()
  if (found.moved === null) throw await whyTurnedAway(ctx)
  // A resumed request may have cancelled the payout already, before it was interrupted.
  const isOwn = ctx.idempotentOperation?.isResumed === true && found.status === 'cancelled'
  if (!found.moved && !isOwn) {
    throw new DomainError(
      'STATE_CONFLICT',
      `Only a payout that is pending can be cancelled: this one is ${found.status}.`,
    )
  }
  return { id }
}

/** Cancels one payout; see cancel_payout.sql. */
export const cancelPendingPayout = sqlFunction('cancel_payout', {
  takes: {
    merchant: 'int',
    payout: 'bigint',
    recording: recordingType,
    credential: 'int',
    credentialVersion: 'int',
    address: 'text?',
  },
  gives: { moved: 'boolean?', status: sqlType<PayoutStatus>('payout_status') },
})

function noSuchPayout(): DomainError {
  return new DomainError('NOT_FOUND', 'There is no such payout.')
}
