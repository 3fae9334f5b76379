import { defineStates } from '../../shared/states.ts'

/**
 * The lifecycle of a payout (see docs/design/rules.md#payouts). A payout in
 * `processing` may have reached the operator, so it never goes back to `pending`.
 */
export const payoutStates = defineStates('payout', 'pending', {
  pending: {
    processing: 'it is sent to the operator',
    failed: 'it was due, and not covered',
    cancelled: 'its merchant cancelled it, or it was not approved in time',
  },
  processing: { completed: 'the operator confirmed it', failed: 'the operator refused it' },
  completed: {},
  failed: {},
  cancelled: {},
})

export type PayoutStatus = (typeof payoutStates.statuses)[number]
