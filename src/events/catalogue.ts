/**
 * Every event of the log, each written in the transaction of the change it tells of. The log feeds the live
 * subscriptions, and its position is the one sequence that every reader counts by.
 */
export const events = {
  payment_pending: 'A collection was recorded and its customer is being asked.',
  payment_received: 'A collection was confirmed by the operator and credited.',
  payment_failed: 'A collection was refused or could not complete.',
  payment_cancelled: 'A collection was cancelled before it completed.',
  payment_expired: 'Nobody confirmed a collection within 24 hours.',
  payment_reversed: 'The operator took a credited collection back, or refunds gave back all of it.',
  deposit_processing: 'A deposit or a refund was recorded, and its money set aside.',
  deposit_completed: 'A deposit was paid by the operator.',
  deposit_failed: 'A deposit was refused or could not complete: its money is free again.',
  deposit_reversed: 'The operator gave a deposit back.',
  payout_pending: 'A payout was recorded.',
  payout_processing: 'A payout is on its way to the operator.',
  payout_completed: 'A payout was paid by the operator.',
  payout_failed: 'A payout was refused, could not complete, or was not covered when due.',
  payout_cancelled: 'A payout was cancelled, or nobody approved it in time.',
  payout_reversed: 'The operator gave a payout back.',
} as const
export type EventType = keyof typeof events

/**
 * What the log keeps of a transaction at the moment of an event; frozen, whatever becomes of the transaction.
 */
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
  /** Of a reversal: what the merchant no longer had, and owes. */
  shortfall?: number
  /** Of a reversal: refunds gave it back, not the operator. */
  refunded?: boolean
  /** Of a refund: the collection that it gives back. */
  refund_of?: number
}

/** What the log keeps of a payout at the moment of an event; frozen, whatever becomes of the payout. */
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
  beneficiary_id?: number
}

/** One line of a merchant's log. */
export interface LogEvent<Data = TransactionEventData | PayoutEventData> {
  /** 1, 2, 3, ... per merchant, without a gap. */
  position: bigint
  type: EventType
  data: Data
  occurredAt: Date
}

/** Whether an event tells of a payout. */
export function isPayoutEvent(event: LogEvent): event is LogEvent<PayoutEventData> {
  return event.type.startsWith('payout_')
}

/** Whether an event tells of a collection or a deposit. */
export function isTransactionEvent(event: LogEvent): event is LogEvent<TransactionEventData> {
  return !isPayoutEvent(event)
}
