import type { Services } from '../context.ts'
import type { Evidence } from '../operators/operator.ts'
import type { Subject } from '../operators/requests.ts'
import { limits } from '../shared/limits.ts'
import type { States } from '../shared/states.ts'
import { settleRecipient } from './batches/settle.ts'
import { recipientStates } from './batches/states.ts'
import type { Ending } from './outcome.ts'
import { settlePayout } from './payouts/settle.ts'
import { payoutStates } from './payouts/states.ts'
import { reverseDisbursement } from './reverse-disbursement.ts'
import { reverseTransaction } from './transactions/reverse.ts'
import { settleTransaction } from './transactions/settle.ts'
import { settleDeposit } from './transactions/settle-deposit.ts'
import { transactionStates } from './transactions/states.ts'

/** What a request to an operator is for, as far as that decides how it is sent, asked about and ended. */
interface SubjectRow {
  states: Pick<States<string>, 'canMove'>
  /** Its status while its outcome is awaited, and once the money moved. */
  open: string
  success: string
  /** What provably never left is sent again for so long after it was recorded. */
  unsentForMs: number
  /** Whether it waits where our own float at the operator is empty; else it failed. */
  waitsForFloat: boolean
  /** What the operator has no record of is sent again for so long. */
  resendAbsentForMs: number
  /** Brings it its outcome, once, whoever learned it. */
  settle: (services: Services, id: bigint, outcome: Ending) => Promise<{ moved: boolean; status: string }>
  /** Takes back what was paid, on the operator's answer that it did so. */
  reverse: (services: Services, id: bigint, evidence: Evidence) => Promise<{ moved: boolean; status: string }>
}

/** Every kind of subject. A disbursement is owed: it is sent until it is known, whatever its age. */
export const subjects: Readonly<Record<Subject, SubjectRow>> = {
  collection: {
    states: transactionStates,
    open: 'pending',
    success: 'success',
    unsentForMs: limits.resendForMs,
    waitsForFloat: false,
    resendAbsentForMs: limits.resendForMs,
    settle: settleTransaction,
    reverse: reverseTransaction,
  },
  deposit: {
    states: transactionStates,
    open: 'processing',
    success: 'success',
    unsentForMs: limits.depositUnsentForMs,
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
