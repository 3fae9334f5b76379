import { asPlatform } from '../../database/as-platform.ts'
import { manyParameters, recordingOf, recordManySql } from '../../audit/audit-log.ts'
import { callerOf, whyTurnedAway } from '../../identity/caller.ts'
import type { Context } from '../../context.ts'
import { DomainError } from '../../shared/errors.ts'
import type { PayoutStatus } from './states.ts'

/**
 * Cancels a payout that has not begun; what was set aside for it is free again. Whoever begins it at the same
 * moment decides by the row.
 * @returns the payout, `cancelled`
 * @throws DomainError NOT_FOUND, STATE_CONFLICT where it has begun or ended
 */
export async function cancelPayout(ctx: Context, id: bigint): Promise<{ id: bigint }> {
  const { merchantId, apiKeyId, apiKeyVersion, clientAddress } = callerOf(ctx)
  // Row-level security sees to it as well that it is theirs; the function that cancels stands above it.
  const theirs = await ctx.database.merchantPool.query({
    name: 'own_payout',
    text: 'SELECT FROM payout WHERE id = $1 AND merchant_id = $2',
    values: [id, merchantId],
  })
  if (theirs.rowCount === 0) throw noSuchPayout()
  const { rows } = await asPlatform(ctx, 'the SQL function receives the id of the merchant').pool.query<{
    moved: boolean | null
    status: PayoutStatus
  }>({
    name: 'cancel_payout',
    text: `WITH cancelled AS MATERIALIZED (SELECT moved, status FROM cancel_payout($1, $2, $3, $4, $5)),
      ${recordManySql(6, cancelledEntry)}
      SELECT moved, status FROM cancelled`,
    values: [
      merchantId,
      id,
      apiKeyId,
      apiKeyVersion,
      clientAddress,
      ...manyParameters([recordingOf(ctx, 'cancelPayout')]),
    ],
  })
  const [found] = rows
  if (!found) throw noSuchPayout()
  if (found.moved === null) throw await whyTurnedAway(ctx)
  // A request that goes on with what it began may have done it already.
  const isOwn = ctx.effect?.isResumed === true && found.status === 'cancelled'
  if (!found.moved && !isOwn) {
    throw new DomainError(
      'STATE_CONFLICT',
      `Only a payout that is pending can be cancelled: this one is ${found.status}.`,
    )
  }
  ctx.sequencer.nudge()
  return { id }
}

const cancelledEntry = `SELECT 1, 'payout:' || $2, '{"status":"pending"}'::jsonb,
  '{"status":"cancelled"}'::jsonb FROM cancelled WHERE moved`

function noSuchPayout(): DomainError {
  return new DomainError('NOT_FOUND', 'There is no such payout.')
}
