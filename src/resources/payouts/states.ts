import { defineStates } from '../../shared/states.ts'

/**
 * Lifecycle of a payout (specification: States and transitions; decisions: Money and states). What is
 * `processing` may have left: it never goes back.
 */
export const payoutStates = defineStates('payout', 'pending', {
  pending: {
    processing: 'it is sent to the operator',
    failed: 'it was due, and not covered',
    cancelled: 'its merchant cancelled it, or nobody approved it',
  },
  processing: { completed: 'the operator confirmed it', failed: 'the operator refused it' },
  completed: {},
  failed: {},
  cancelled: {},
})

export type PayoutStatus = (typeof payoutStates.statuses)[number]
