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
  payment_reversed: 'The operator took a credited collection back.',
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
}

/** One line of a merchant's log. */
export interface LogEvent {
  /** 1, 2, 3, ... per merchant, without a gap. */
  position: bigint
  type: EventType
  data: TransactionEventData
  occurredAt: Date
}
