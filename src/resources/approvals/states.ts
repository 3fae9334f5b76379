import { defineStates } from '../../shared/states.ts'

/** Whether people let something go, where its merchant asks for that (decisions: Money and states). */
export const approvalStates = defineStates('approval', 'pending', {
  not_required: {},
  pending: {
    approved: 'somebody else than its makers approved it',
    rejected: 'somebody rejected it',
    expired: 'nobody decided in seven days',
  },
  approved: {},
  rejected: {},
  expired: {},
})

export type ApprovalStatus = (typeof approvalStates.statuses)[number]
