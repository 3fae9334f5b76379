import { defineStates } from '../../shared/states.ts'

/**
 * Lifecycle of a batch (specification: States and transitions; decisions: Endpoints). It ends when the last
 * of its recipients has.
 */
export const batchStates = defineStates('batch', 'draft', {
  draft: {
    pending_approval: 'it is to be processed, its money is set aside, and people decide',
    processing: 'it is to be processed, and its money is set aside',
    cancelled: 'its merchant cancelled it',
  },
  pending_approval: {
    processing: 'enough people approved it',
    cancelled: 'its merchant cancelled it, somebody rejected it, or nobody approved it',
  },
  processing: {
    completed: 'all were paid',
    partially_completed: 'some were paid',
    failed: 'nobody was paid',
    cancelled: 'its merchant cancelled what was not sent, and the rest has ended',
  },
  completed: {},
  partially_completed: {},
  failed: {},
  cancelled: {},
})

/** Lifecycle of a recipient of a batch. What is `processing` may have left: it never goes back. */
export const recipientStates = defineStates('recipient', 'pending', {
  pending: {
    processing: 'it is sent to the operator',
    cancelled: 'its batch was cancelled before',
  },
  processing: { success: 'the operator confirmed it', failed: 'the operator refused it' },
  success: {},
  failed: {},
  cancelled: {},
})

export type BatchStatus = (typeof batchStates.statuses)[number]
export type RecipientStatus = (typeof recipientStates.statuses)[number]
