import { sqlFunctionOfMany, sqlType } from '../../database/sql-function.ts'
import { outcomeTypes } from '../../requests/outcome.ts'
import { settlesPaymentsOut } from '../disbursements/settle.ts'
import type { TransactionStatus } from './states.ts'

/** Writes status, ledger entries, event and the end of the operator request in one commit. */
export const settleDeposits = sqlFunctionOfMany('settle_deposits', {
  each: {
    transactionId: 'bigint',
    toStatus: sqlType<TransactionStatus>('transaction_status'),
    ...outcomeTypes,
  },
  takes: {},
  gives: { ordinal: 'int', moved: 'boolean', status: sqlType<TransactionStatus>('transaction_status') },
})

/** Applies the final outcome of a deposit or a refund. */
export const settleDeposit = settlesPaymentsOut<TransactionStatus>({
  origin: 'transaction',
  becomes: { success: 'success', failed: 'failed' },
  settleMany: (pool, ended) =>
    settleDeposits(
      pool,
      ended.map(({ id, ...outcome }) => ({ transactionId: id, ...outcome })),
      {},
    ),
})
