import type { EventType } from '../operations.ts'

/** The types of events in groups, in the order in which a form shows them. */
export const eventGroups = {
  payments: [
    'PAYMENT_RECEIVED',
    'PAYMENT_FAILED',
    'PAYMENT_PENDING',
    'PAYMENT_EXPIRED',
    'PAYMENT_CANCELLED',
    'PAYMENT_REVERSED',
    'PAYMENT_LINK_USED',
    'PAYMENT_EXCESS_CREDITED',
    'PAYMENT_EXCESS_RETURNED',
  ],
  out: [
    'PAYOUT_COMPLETED',
    'PAYOUT_FAILED',
    'PAYOUT_PENDING',
    'PAYOUT_PROCESSING',
    'PAYOUT_CANCELLED',
    'PAYOUT_REVERSED',
    'DEPOSIT_COMPLETED',
    'DEPOSIT_FAILED',
    'DEPOSIT_PENDING',
    'DEPOSIT_PROCESSING',
    'DEPOSIT_CANCELLED',
    'DEPOSIT_REVERSED',
    'WITHHELD_CREDITED',
    'WITHHELD_PAID',
  ],
  payrolls: [
    'BULK_PAY_DONE',
    'BATCH_DRAFT',
    'BATCH_PENDING_APPROVAL',
    'BATCH_PROCESSING',
    'BATCH_PROGRESS',
    'BATCH_CANCELLED',
    'RECIPIENT_REVERSED',
  ],
  approvals: ['APPROVAL_GIVEN', 'SETTINGS_PENDING_APPROVAL', 'SETTINGS_CHANGE_CANCELLED'],
  security: ['SECURITY_ALERT', 'TEAM_LOGIN', 'API_KEY_CREATED'],
} as const satisfies Record<string, readonly EventType[]>

/** Every type of event. */
export const eventTypes: readonly EventType[] = Object.values(eventGroups).flat()
