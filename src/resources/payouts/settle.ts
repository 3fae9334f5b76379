import { sqlFunctionOfMany, sqlType } from '../../database/sql-function.ts'
import { outcomeTypes } from '../../requests/outcome.ts'
import { settlesPaymentsOut } from '../settle-payment-out.ts'
import type { PayoutStatus } from './states.ts'

/**
 * What payouts led to within this time is one statement. Nobody waits for a payout as a caller waits for a
 * deposit.
 */
const payoutsSettlePaceMs = 10

/** Status, movements, event and the end of the operator request, in one commit. */
export const settlePayouts = sqlFunctionOfMany('settle_payouts', {
  each: { payoutId: 'bigint', toStatus: sqlType<PayoutStatus>('payout_status'), ...outcomeTypes },
  takes: {},
  gives: { ordinal: 'int', moved: 'boolean', status: sqlType<PayoutStatus>('payout_status') },
})

/** Ends a payout that was sent. */
export const settlePayout = settlesPaymentsOut<PayoutStatus>({
  origin: 'payout',
  becomes: { success: 'completed', failed: 'failed' },
  paceMs: payoutsSettlePaceMs,
  settleMany: (pool, ended) =>
    settlePayouts(
      pool,
      ended.map(({ id, ...outcome }) => ({ payoutId: id, ...outcome })),
      {},
    ),
})
