import { defineStates } from '../../shared/states.ts'

/**
 * Lifecycle of a batch (see docs/design/rules.md#batches). The batch ends when its
 * last recipient ends.
 */
export const batchStates = defineStates('batch', 'draft', {
  draft: {
    pending_approval: 'its merchant processed it, its money is reserved, and it needs approvals',
    processing: 'its merchant processed it, and its money is reserved',
    cancelled: 'its merchant cancelled it',
  },
  pending_approval: {
    processing: 'enough people approved it',
    cancelled: 'its merchant cancelled it, a member rejected it, or it was not approved in time',
  },
  processing: {
    completed: 'all recipients were paid',
    partially_completed: 'some recipients were paid',
    failed: 'no recipient was paid',
    cancelled: 'its merchant cancelled the unsent recipients, and the others have ended',
  },
  completed: {},
  partially_completed: {},
  failed: {},
  cancelled: {},
})

/**
 * Lifecycle of a recipient of a batch. A `processing` recipient never becomes `pending` again: its request
 * may have reached the operator.
 */
export const recipientStates = defineStates('recipient', 'pending', {
  pending: {
    processing: 'it is sent to the operator',
    cancelled: 'its batch was cancelled before it was sent',
  },
  processing: { success: 'the operator confirmed it', failed: 'the operator refused it' },
  success: {},
  failed: {},
  cancelled: {},
})

export type BatchStatus = (typeof batchStates.statuses)[number]
export type RecipientStatus = (typeof recipientStates.statuses)[number]
