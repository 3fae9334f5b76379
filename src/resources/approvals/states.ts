import { defineStates } from '../../shared/states.ts'

/**
 * Lifecycle of the approval of an item, where the settings require one (see docs/design/rules.md#approvals).
 */
export const approvalStates = defineStates('approval', 'pending', {
  not_required: {},
  pending: {
    approved: 'enough members other than its makers approved it',
    rejected: 'a member rejected it',
    expired: 'it was not approved within seven days',
  },
  approved: {},
  rejected: {},
  expired: {},
})

export type ApprovalStatus = (typeof approvalStates.statuses)[number]
