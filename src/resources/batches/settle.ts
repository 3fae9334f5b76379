import { sqlFunctionOfMany, sqlType } from '../../database/sql-function.ts'
import { outcomeTypes } from '../../requests/outcome.ts'
import { settlesPaymentsOut } from '../disbursements/settle.ts'
import type { RecipientStatus } from './states.ts'

/**
 * Outcomes of recipients that arrive within this time, in ms, share one statement and one event for each
 * batch. No caller waits for a recipient, as a caller does for a deposit.
 */
const recipientsSettlePaceMs = 40

/** Settles recipients: status, ledger entries, event and the end of the operator request in one commit. */
export const settleRecipients = sqlFunctionOfMany('settle_recipients', {
  each: { recipientId: 'bigint', toStatus: sqlType<RecipientStatus>('recipient_status'), ...outcomeTypes },
  takes: {},
  gives: { ordinal: 'int', moved: 'boolean', status: sqlType<RecipientStatus>('recipient_status') },
})

/**
 * Applies an outcome to a recipient that was sent. The same commit changes the counts of its batch; the last
 * recipient ends the batch.
 */
export const settleRecipient = settlesPaymentsOut<RecipientStatus>({
  origin: 'recipient',
  becomes: { success: 'success', failed: 'failed' },
  paceMs: recipientsSettlePaceMs,
  settleMany: (pool, ended) =>
    settleRecipients(
      pool,
      ended.map(({ id, ...outcome }) => ({ recipientId: id, ...outcome })),
      {},
    ),
})
