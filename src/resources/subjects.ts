import type { Subjects } from '../requests/subjects.ts'
import { limits } from '../shared/limits.ts'
import { settleRecipient } from './batches/settle.ts'
import { recipientStates } from './batches/states.ts'
import { settlePayout } from './payouts/settle.ts'
import { payoutStates } from './payouts/states.ts'
import { reverseDisbursement } from './disbursements/reverse.ts'
import { receiptUrl } from './transactions/receipt.ts'
import { reverseTransaction } from './transactions/reverse.ts'
import { settleTransaction } from './transactions/settle.ts'
import { settleDeposit } from './transactions/settle-deposit.ts'
import { transactionStates } from './transactions/states.ts'

/**
 * How long a deposit that needed no approval is tried again, if it provably was not sent. Choice: less than
 * the 20 s for which its caller waits.
 */
const depositUnsentForMs = 15_000

/**
 * The kinds of subject of a request to an operator, each with its rules (see `requests/`). A disbursement of
 * which the operator has no record is sent again without a limit of time, because the merchant owes it.
 */
export const subjects: Subjects = {
  collection: {
    states: transactionStates,
    open: 'pending',
    success: 'success',
    unsentForMs: limits.resendForMs,
    waitsForFloat: false,
    resendAbsentForMs: limits.resendForMs,
    settle: settleTransaction,
    expire: settleTransaction,
    reverse: reverseTransaction,
    pageOf: receiptUrl,
  },
  deposit: {
    states: transactionStates,
    open: 'processing',
    success: 'success',
    unsentForMs: depositUnsentForMs,
    waitsForFloat: false,
    resendAbsentForMs: Number.POSITIVE_INFINITY,
    settle: settleDeposit,
    reverse: (services, id, evidence) => reverseDisbursement(services, 'deposit', id, evidence),
  },
  payout: {
    states: payoutStates,
    open: 'processing',
    success: 'completed',
    unsentForMs: limits.payoutUnsentForMs,
    waitsForFloat: true,
    resendAbsentForMs: Number.POSITIVE_INFINITY,
    settle: settlePayout,
    reverse: (services, id, evidence) => reverseDisbursement(services, 'payout', id, evidence),
  },
  recipient: {
    states: recipientStates,
    open: 'processing',
    success: 'success',
    unsentForMs: limits.payoutUnsentForMs,
    waitsForFloat: true,
    resendAbsentForMs: Number.POSITIVE_INFINITY,
    settle: settleRecipient,
    reverse: (services, id, evidence) => reverseDisbursement(services, 'recipient', id, evidence),
  },
}
