import type { Subjects } from '../requests/subjects.ts'
import { limits } from '../shared/limits.ts'
import { settleRecipient } from './batches/settle.ts'
import { recipientStates } from './batches/states.ts'
import { settlePayout } from './payouts/settle.ts'
import { payoutStates } from './payouts/states.ts'
import { reverseDisbursement } from './reverse-disbursement.ts'
import { receiptUrl } from './transactions/receipt.ts'
import { reverseTransaction } from './transactions/reverse.ts'
import { settleTransaction } from './transactions/settle.ts'
import { settleDeposit } from './transactions/settle-deposit.ts'
import { transactionStates } from './transactions/states.ts'

/** How long a deposit that provably never left is sent again. Choice: as long as its caller waits. */
const depositUnsentForMs = 15_000

/**
 * The kinds of subject of a request to an operator, each with its rules (see `requests/`). A disbursement has
 * no maximum age after which it is no longer sent again when the operator has no record of it: the merchant
 * owes it.
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
