/** The four operators that this program plays, by the letter in their paths (`/op-a/…`). */
export const operatorKeys = ['a', 'b', 'c', 'd'] as const
export type OperatorKey = (typeof operatorKeys)[number]

/** Why an operator does not carry out what it was asked, in words that belong to no protocol. */
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

/** What the operator will do by itself when the time comes (milliseconds of the simulator's clock). */
export interface Due {
  readonly at: number
  readonly act: 'confirm' | 'refuse' | 'expire' | 'reverse'
  readonly reason: Reason | null
}

/**
 * One operation at an operator: a prompt on a telephone, a payout, a checkout session or a reversal.
 * Rows are replaced, never changed in place, and written whole to the journal. Amounts are whole francs.
 */
export interface SimulatedOperation {
  /** Names the operation in its protocol: transaction reference, session id or payout id. */
  readonly id: string
  readonly operator: OperatorKey
  readonly kind: SimulatedOperationKind
  readonly state: OperationState
  /** The number that the customer reads in the SMS receipt. */
  readonly reference: string
  /** The client's own name for the request, `X-CorrelationID` or `Idempotency-Key`; may be empty. */
  readonly correlationId: string
  readonly serverCorrelationId: string
  readonly clientReference: string
  /** Hash of the request body, to tell a repeat from a misuse of the same key. */
  readonly bodyHash: string
  /** E.164; null until a payer shows up at an open checkout session. */
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
  /** Francs given back so far. */
  readonly reversedAmount: string
  /** A checkout session: where its page sends the payer's browser, and who alone may pay. */
  readonly page: {
    readonly successUrl: string
    readonly errorUrl: string
    readonly onlyPayer: string | null
  } | null
}

/** A balanced movement in one operator's book: a transfer takes from one account what it gives to another. */
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
  /** Null: the webhook address that is set when it is sent. */
  readonly url: string | null
  /** What it tells of. */
  readonly operationId?: string
  readonly correlationId: string
  readonly body: string
  /** Its signature or digest is wrong. */
  readonly forged?: boolean
  readonly attempts: number
  /** Next attempt; null when it was delivered or given up. */
  readonly dueAt: number | null
}

/** Where the checkout operator sends its signed events. */
export interface WebhookTarget {
  readonly url: string
  readonly secret: string
}

/** One thing that happened; a line of the journal holds those that are true together. */
export type OperationChange =
  | { readonly operation: SimulatedOperation }
  | { readonly entry: JournalEntry }
  | { readonly note: CallbackNotice }
  /** Milliseconds that the simulator's clock is ahead of the machine's, and the name of what moved it. */
  | { readonly clock: number; readonly move?: string }
  | { readonly webhook: WebhookTarget | null }
  /** Everything forgotten but the count of operations, so that no reference is given twice. */
  | { readonly reset: number }
