/** The four operators that this program simulates, by the letter in their paths (`/op-a/…`). */
export const operatorKeys = ['a', 'b', 'c', 'd'] as const
export type OperatorKey = (typeof operatorKeys)[number]

/** The reasons why an operator does not execute an operation, independent of a protocol. */
export type Reason =
  | 'declined'
  | 'insufficientFunds'
  | 'notFound'
  | 'limit'
  | 'blocked'
  | 'wrongPin'
  | 'busy'
  | 'expired'
  | 'cancelled'
  | 'notReversible'

export type SimulatedOperationKind = 'collect' | 'disburse' | 'reverse'
export type OperationState = 'pending' | 'completed' | 'failed' | 'reversed'

/** The operator's own act at a future time (milliseconds of the simulator's clock). */
export interface Due {
  readonly at: number
  readonly act: 'confirm' | 'refuse' | 'expire' | 'reverse'
  readonly reason: Reason | null
}

/**
 * One operation at an operator: a prompt on a telephone, a payout, a checkout session or a reversal. Rows are
 * replaced, never changed in place, and written whole to the journal. Amounts are whole francs.
 */
export interface SimulatedOperation {
  /** The name of the operation in its protocol: transaction reference, session id or payout id. */
  readonly id: string
  readonly operator: OperatorKey
  readonly kind: SimulatedOperationKind
  readonly state: OperationState
  /** The number that the customer reads in the SMS receipt. */
  readonly reference: string
  /** The client's own id of the request, `X-CorrelationID` or `Idempotency-Key`; may be empty. */
  readonly correlationId: string
  readonly serverCorrelationId: string
  readonly clientReference: string
  /** The hash of the request body, which tells a repetition from a wrong use of the same key. */
  readonly bodyHash: string
  /** E.164; null for a checkout session without a named payer, until it is paid. */
  readonly msisdn: string | null
  readonly amount: string
  readonly fee: string
  readonly description: string
  readonly callbackUrl: string | null
  readonly scenario: string
  readonly createdAt: number
  readonly changedAt: number
  readonly settledAt: number | null
  readonly expiresAt: number | null
  readonly due: Due | null
  readonly refusal: Reason | null
  /** Why the last attempt at a checkout session failed; the session may still be open. */
  readonly lastError: Reason | null
  readonly pinFailures: number
  /** The operation that this one reverses. */
  readonly originalId: string | null
  /** The francs that were given back so far. */
  readonly reversedAmount: string
  /** For a checkout session: where its page sends the payer's browser, and the only number that may pay. */
  readonly page: {
    readonly successUrl: string
    readonly errorUrl: string
    readonly onlyPayer: string | null
  } | null
}

/** A balanced entry in one operator's book: each transfer moves an amount from one account to another. */
export interface JournalEntry {
  readonly seq: number
  readonly operator: OperatorKey
  readonly at: number
  readonly type: EntryType
  readonly operationId: string | null
  readonly transfers: readonly Transfer[]
}
export type EntryType = 'opening' | 'top_up' | SimulatedOperationKind
export interface Transfer {
  readonly from: string
  readonly to: string
  readonly amount: string
}

/** A callback or webhook on its way to the service. */
export interface CallbackNotice {
  readonly id: string
  readonly operator: OperatorKey
  /** Null: the webhook address that is set when the callback is sent. */
  readonly url: string | null
  readonly operationId?: string
  readonly correlationId: string
  readonly body: string
  /** True if its signature or digest is wrong. */
  readonly forged?: boolean
  readonly attempts: number
  /** The time of the next attempt; null when it was delivered or given up. */
  readonly dueAt: number | null
}

/** The target of the checkout operator's signed events. */
export interface WebhookTarget {
  readonly url: string
  readonly secret: string
}

/** One change; a line of the journal holds the changes of one commit. */
export type OperationChange =
  | { readonly operation: SimulatedOperation }
  | { readonly entry: JournalEntry }
  | { readonly note: CallbackNotice }
  /** The milliseconds that the simulator's clock is ahead of the machine's, and the name of the move. */
  | { readonly clock: number; readonly move?: string }
  | { readonly webhook: WebhookTarget | null }
  /** All operations are forgotten, but not their count, so that no reference is given twice. */
  | { readonly reset: number }
