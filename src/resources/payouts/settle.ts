import { sqlFunctionOfMany, sqlType } from '../../database/sql-function.ts'
import { outcomeTypes } from '../../requests/outcome.ts'
import { settlesPaymentsOut } from '../disbursements/settle.ts'
import type { PayoutStatus } from './states.ts'

/**
 * The time, in ms, for which outcomes of payouts are collected for one statement. It may be longer than for a
 * deposit, because no caller waits for the outcome of a payout.
 */
const payoutsSettlePaceMs = 10

/** Writes status, ledger entries, event and the end of the operator request in one commit. */
export const settlePayouts = sqlFunctionOfMany('settle_payouts', {
  each: { payoutId: 'bigint', toStatus: sqlType<PayoutStatus>('payout_status'), ...outcomeTypes },
  takes: {},
  gives: { ordinal: 'int', moved: 'boolean', status: sqlType<PayoutStatus>('payout_status') },
})

/** Applies the final outcome of a payout that was sent. */
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
