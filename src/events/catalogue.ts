import type { SecurityAlertData } from './alerts.ts'

const money = ['reference', 'amount', 'currency', 'payment_method']
const payment = ['transaction_id', ...money, 'customer_phone', 'late']
const failedPayment = [...payment, 'failure_reason']
const deposit = ['transaction_id', ...money, 'customer_phone', 'refund_of']
const approved = ['payout_id', ...money, 'destination_phone']
const payout = [...approved, 'failure_reason']
const withheld = [...deposit, 'payout_id', 'destination_phone', 'batch_id', 'recipient_id', 'name', 'account']
const batch = [
  'batch_id',
  'status',
  'recipient_count',
  'succeeded_count',
  'failed_count',
  'cancelled_count',
  'total_amount',
  'paid_amount',
]

interface EventKind {
  /** A description in one sentence. */
  tells: string
  /** The kind of thing that the event is about; `null`: another kind. */
  about: 'transaction' | 'payout' | 'batch' | null
  /** The fields of the event's data that a webhook sends, where the data has them. */
  webhook: readonly string[]
}

/**
 * Every kind of event of the log. Each event is written in the transaction of the change that it reports.
 * Live subscriptions and webhooks read the log, and continue from the position of their last event.
 * @see docs/design/events.md#event-data
 */
export const events = {
  payment_pending: {
    tells: 'A collection was recorded, and the customer is asked to confirm it.',
    about: 'transaction',
    webhook: payment,
  },
  payment_received: {
    tells: 'A collection was confirmed by the operator and credited.',
    about: 'transaction',
    webhook: [...payment, 'excess', 'unpaid_amount'],
  },
  payment_failed: {
    tells: 'A collection was refused or could not be completed.',
    about: 'transaction',
    webhook: failedPayment,
  },
  payment_cancelled: {
    tells: 'A collection was cancelled before it completed. At present the service cancels no collection.',
    about: 'transaction',
    webhook: failedPayment,
  },
  payment_expired: {
    tells: 'A collection expired because the customer did not confirm it within 24 hours.',
    about: 'transaction',
    webhook: failedPayment,
  },
  payment_reversed: {
    tells: 'A paid collection was taken back by the operator, or fully refunded.',
    about: 'transaction',
    webhook: [...payment, 'shortfall', 'refunded'],
  },
  payment_excess_credited: {
    tells: 'Money that a customer paid beyond the amount of a collection was credited to the merchant.',
    about: 'transaction',
    webhook: payment,
  },
  payment_excess_returned: {
    tells: 'Money that a customer paid beyond the amount of a collection was returned to the customer.',
    about: 'transaction',
    webhook: payment,
  },
  deposit_pending: {
    tells: 'A deposit or refund waits for approval; its money is reserved.',
    about: 'transaction',
    webhook: [...deposit, 'approval'],
  },
  deposit_cancelled: {
    tells: 'A deposit or refund was rejected, or not approved in time; its money is available again.',
    about: 'transaction',
    webhook: [...deposit, 'approval', 'rejection_reason'],
  },
  deposit_processing: {
    tells: 'A deposit or refund was recorded, and its money was reserved.',
    about: 'transaction',
    webhook: deposit,
  },
  deposit_completed: {
    tells: 'A deposit was paid by the operator.',
    about: 'transaction',
    webhook: [...deposit, 'withheld_amount'],
  },
  deposit_failed: {
    tells: 'A deposit was refused or could not be completed; its money is available again.',
    about: 'transaction',
    webhook: [...deposit, 'failure_reason'],
  },
  deposit_reversed: { tells: 'The operator gave a deposit back.', about: 'transaction', webhook: deposit },
  payout_pending: { tells: 'A payout was recorded.', about: 'payout', webhook: payout },
  payout_processing: { tells: 'A payout is being sent to the operator.', about: 'payout', webhook: payout },
  payout_completed: {
    tells: 'A payout was paid by the operator.',
    about: 'payout',
    webhook: [...payout, 'withheld_amount'],
  },
  payout_failed: {
    tells: 'A payout was refused, could not be completed, or was not covered by the balance when it was due.',
    about: 'payout',
    webhook: payout,
  },
  payout_cancelled: {
    tells: 'A payout was cancelled, rejected, or not approved in time.',
    about: 'payout',
    webhook: [...payout, 'approval', 'rejection_reason'],
  },
  payout_reversed: { tells: 'The operator gave a payout back.', about: 'payout', webhook: payout },
  approval_given: {
    tells: 'A member approved a request; more approvals may be required.',
    about: null,
    webhook: [
      ...approved,
      'batch_id',
      'recipient_count',
      'total_amount',
      'settings_change_id',
      'changes',
      'transaction_id',
      'customer_phone',
      'refund_of',
      'approval',
      'approved_by',
      'approvals',
      'approvals_required',
    ],
  },
  settings_pending_approval: {
    tells: 'A settings change that makes approvals less strict waits for approval.',
    about: null,
    webhook: ['settings_change_id', 'changes', 'approval'],
  },
  settings_change_cancelled: {
    tells: 'A settings change was rejected, or not approved in time.',
    about: null,
    webhook: ['settings_change_id', 'changes', 'approval', 'rejection_reason'],
  },
  batch_draft: {
    tells: 'A batch was created, or recipients were added to it.',
    about: 'batch',
    webhook: batch,
  },
  batch_pending_approval: {
    tells: 'A batch waits for approval; its money is reserved.',
    about: 'batch',
    webhook: batch,
  },
  batch_processing: {
    tells: 'The recipients of a batch are being paid.',
    about: 'batch',
    webhook: batch,
  },
  batch_progress: {
    tells: 'Some recipients of a batch reached a final status; others have not yet.',
    about: 'batch',
    webhook: [...batch, 'processing_count'],
  },
  batch_cancelled: {
    tells: 'A batch was cancelled before its payment began, was rejected, or was not approved in time.',
    about: 'batch',
    webhook: [...batch, 'approval', 'rejection_reason'],
  },
  bulk_pay_done: {
    tells: 'A batch has ended: all its recipients have a final status.',
    about: 'batch',
    webhook: batch,
  },
  recipient_reversed: {
    tells: 'The operator gave the payment of a batch recipient back.',
    about: null,
    webhook: ['batch_id', 'recipient_id', 'name', 'account', 'amount', 'currency', 'payment_method'],
  },
  withheld_credited: {
    tells: 'Money that an operator did not confirm of a deposit, payout or recipient is available again.',
    about: null,
    webhook: withheld,
  },
  withheld_paid: {
    tells: 'Money that an operator had not confirmed of a deposit, payout or recipient was found to be paid.',
    about: null,
    webhook: withheld,
  },
  payment_link_used: {
    tells: 'A payment by a payment link was confirmed by the operator and credited to the merchant.',
    about: null,
    webhook: ['payment_link_id', 'url_slug', 'transaction_id', 'reference', 'amount', 'usage_count'],
  },
  team_login: {
    tells: 'A member of the team signed in.',
    about: null,
    webhook: ['team_member_id', 'email', 'ip'],
  },
  api_key_created: {
    tells: 'An API key was created or regenerated.',
    about: null,
    webhook: ['api_key_id', 'prefix', 'scopes', 'created_by'],
  },
  security_alert: {
    tells: 'A security event that the owner of the account should check.',
    about: null,
    webhook: ['kind', 'message', 'ip'],
  },
} as const satisfies Record<string, EventKind>
export type EventType = keyof typeof events

/** The data of a transaction at the moment of an event; later changes of the transaction do not alter it. */
export interface TransactionEventData {
  transaction_id: number
  reference: string
  amount: number
  currency: string
  payment_method: string
  customer_phone: string
  status: string
  previous_status?: string
  late?: boolean
  failure_reason?: string
  /** For a reversal: the amount that the merchant no longer had, and now owes. */
  shortfall?: number
  /** For a payment: the amount paid beyond `amount`; it waits for a decision of the platform. */
  excess?: number
  /** For a payment: the part of the requested amount that was not paid. */
  unpaid_amount?: number
  /** For a deposit: the part of the requested amount that the operator did not confirm. It waits likewise. */
  withheld_amount?: number
  /** For a reversal: true if refunds gave the money back, not the operator. */
  refunded?: boolean
  /** For a refund: the collection that it gives back. */
  refund_of?: number
  /** For a deposit that needed approval: the state of its approval. */
  approval?: string
  /** For a rejected deposit: the id of the member, and the member's reason. */
  rejected_by?: number
  rejection_reason?: string
}

/** The data of a payout at the moment of an event; later changes of the payout do not alter it. */
export interface PayoutEventData {
  payout_id: number
  reference: string
  amount: number
  currency: string
  payment_method: string
  destination_phone: string
  status: string
  previous_status?: string
  approval: string
  scheduled_at?: string
  failure_reason?: string
  /** The part of the requested amount that the operator did not confirm; it waits for a decision. */
  withheld_amount?: number
  beneficiary_id?: number
  /** For a rejected payout: the id of the member, and the member's reason. */
  rejected_by?: number
  rejection_reason?: string
}

/** The data of a payment by a payment link. */
export interface LinkEventData {
  payment_link_id: number
  url_slug: string
  transaction_id: number
  reference: string
  amount: number
  currency: string
  /** The number of payments by the link that succeeded, including this one. */
  usage_count: number
}

/** The data of a batch at the moment of an event; later changes of the batch do not alter it. */
export interface BatchEventData {
  batch_id: number
  title?: string
  status: string
  previous_status?: string
  approval: string
  currency: string
  recipient_count: number
  /** The number of payments that were with their operators at that moment. */
  processing_count: number
  succeeded_count: number
  failed_count: number
  cancelled_count: number
  total_amount: number
  paid_amount: number
  /** When the service began to pay the recipients. */
  started_at?: string
  /** For a rejected batch: the id of the member, and the member's reason. */
  rejected_by?: number
  rejection_reason?: string
}

/** The data of a settings change that loosens approvals and waits for approval. */
export interface SettingsChangeEventData {
  settings_change_id: number
  approval: string
  /** The new values, in the words of REST. */
  changes: Record<string, boolean | number>
  /** For a rejected change: the id of the member, and the member's reason. */
  rejected_by?: number
  rejection_reason?: string
}

/** The data of an event about something that waits for approval, or about the decision on it. */
export type ApprovalEventData = (
  | PayoutEventData
  | BatchEventData
  | SettingsChangeEventData
  | (TransactionEventData & { approval: string })
) & {
  /** For an approval: the id of the member. */
  approved_by?: number
  /** For an approval: the number of approvals given, and the number required. */
  approvals?: number
  approvals_required?: number
}

/** The data of an event about a new pair of an API key. */
export interface ApiKeyCreatedData {
  api_key_id: number
  prefix: string
  scopes: readonly string[]
  created_by: string
}

/** One event of a merchant's log. */
export interface LogEvent<
  Data =
    | TransactionEventData
    | PayoutEventData
    | BatchEventData
    | ApprovalEventData
    | LinkEventData
    | SecurityAlertData,
> {
  /** The event's id, unique over all merchants. */
  id: bigint
  /** 1, 2, 3, ... per merchant, without a gap, except where a restore lost events. */
  position: bigint
  type: EventType
  data: Data
  occurredAt: Date
}

/** The types of the events that may change the list of things that wait for approval. */
export const approvalTypes: ReadonlySet<EventType> = new Set([
  'approval_given',
  'payout_pending',
  'payout_cancelled',
  'batch_pending_approval',
  'batch_cancelled',
  'settings_pending_approval',
  'settings_change_cancelled',
  'deposit_pending',
  'deposit_cancelled',
])

/** Whether an event changes the list of things that wait for approval: added, approved, or removed. */
export function isApprovalEvent(event: LogEvent): event is LogEvent<ApprovalEventData> {
  if (event.type === 'approval_given') return true
  if (!approvalTypes.has(event.type) || !('approval' in event.data)) return false
  return ['pending', 'rejected', 'expired'].includes(event.data.approval)
}
