import { defineStates } from '../../shared/states.ts'

/**
 * The lifecycle of a transaction (see docs/design/rules.md#transaction-states). A collection that ended
 * unpaid may still become `success`, because an operator may report a late payment.
 */
export const transactionStates = defineStates('transaction', 'pending', {
  pending: {
    processing: 'being settled',
    success: 'the operator confirmed it',
    failed: 'the operator refused it',
    cancelled: 'cancelled before it completed',
    expired: 'not confirmed within 24 hours',
  },
  processing: { success: 'the operator confirmed it', failed: 'the operator refused it' },
  success: { reversed: 'the operator took it back' },
  failed: { success: 'the operator proved a late payment' },
  cancelled: { success: 'the operator proved a late payment' },
  expired: { success: 'the operator proved a late payment' },
  reversed: {},
})

export type TransactionStatus = (typeof transactionStates.statuses)[number]
