import type { KeyObject } from 'node:crypto'
import type { Clock } from '../shared/clock.ts'
import type { Xof } from '../shared/money.ts'
import type { Provider } from '../shared/providers.ts'
import type { Log } from '../telemetry/log.ts'
import type { FailureReason } from './failure-reasons.ts'

/** The kinds of operations that move money. */
export type OperationKind = 'collect' | 'disburse' | 'reverse'

/** The causes that prove that a call was not executed. */
export const notSentCauses = [
  'circuit_open',
  'bulkhead_full',
  'rate_limited',
  'dns',
  'connect',
  'tls',
  'token',
  'deadline_before_send',
  // Our own account at the operator does not cover the amount: the operator rejected the call before
  // execution.
  'float_empty',
] as const
export type NotSentCause = (typeof notSentCauses)[number]

/** The causes for which it is unknown whether a call was executed. */
export type UnknownCause =
  | 'response_lost'
  | 'headers_timeout'
  | 'body_timeout'
  | 'deadline'
  | 'http_5xx'
  | 'unreadable'
  | 'unmapped'
  /** A well-formed record with an unreadable amount or currency: see `movedAmount`. */
  | 'unreadable_amount'
  /** A well-formed record of another payment: see `isSamePayment`. */
  | 'other_payment'
  /** A well-formed refusal, which says nothing about the earlier sends. */
  | 'resend_refused'

/** The data that is needed to ask about an operation again after a restart; stored as JSON. */
export interface OperatorHandle {
  /** The UUID v4 that we made and stored before the first byte left; it never changes. */
  correlationId: string
  /** Our reference, which the operator repeats in its records and statements. */
  clientRef: string
  /** The operator's reference of the money movement. */
  operatorRef?: string | undefined
  /** The operator's id of the request or payout, in protocols that answer first and work later. */
  serverCorrelationId?: string | undefined
  /** The id of the hosted checkout session. */
  sessionId?: string | undefined
  /** The number of polls that the operator still accepts; absent if it does not count them. */
  pollsLeft?: number | undefined
}

/** The operation that a question is about. */
export interface AskedOperation extends OperatorHandle {
  /** The payee's E.164 number, only for a disbursement: the caller knows it, and no handle stores it. */
  payee?: string | undefined
}

/** The operator's proof that money moved. `amount` is the operator's value, never ours. */
export interface Evidence {
  operatorRef: string
  /** The number on the customer's receipt, where it differs from `operatorRef`. */
  receipt?: string | undefined
  amount: Xof
  fee?: Xof | undefined
  settledAt: Date
  /** The E.164 number of the other party. */
  counterparty?: string | undefined
  source: 'sync' | 'callback' | 'query' | 'statement'
  /** SHA-256 (hex) of the raw bytes of the operator's answer. */
  digest: string
}

/** A definitive refusal. `code` is the operator's own code, if it gave one. */
export interface Refusal {
  reason: FailureReason
  code: string
  message?: string | undefined
  digest?: string | undefined
}

/** The customer's next action: answers a prompt on the telephone, or opens an address. */
export type NextAction = { type: 'push' } | { type: 'redirect'; url: string }

export interface AcceptedOutcome {
  kind: 'accepted'
  /** True if the operator knew the correlation id already: then ask about the first call. */
  duplicate: boolean
  handle: OperatorHandle
  action: NextAction
  expiresAt?: Date | undefined
  pollAfterMs?: number | undefined
  pollLimit?: number | undefined
  notify: 'callback' | 'polling'
}
export interface SettledOutcome {
  kind: 'settled'
  handle: OperatorHandle
  evidence: Evidence
}
/** A call that provably executed nothing. */
export interface NotSent {
  kind: 'not_sent'
  cause: NotSentCause
  retryAfterMs?: number | undefined
  /** The operator's refusal, only with `float_empty`: the same operation may be sent again. */
  refusal?: Refusal | undefined
}
/** A call that may have been executed: only a query tells. */
export interface Unknown {
  kind: 'unknown'
  cause: UnknownCause
  handle: OperatorHandle
}
/** A question without a usable answer. */
export interface Unreachable {
  kind: 'unreachable'
  cause: NotSentCause | UnknownCause
  retryAfterMs?: number | undefined
}

export type InitiateOutcome =
  | AcceptedOutcome
  | SettledOutcome
  | { kind: 'refused'; refusal: Refusal }
  | NotSent
  | Unknown

export type QueryOutcome =
  | { kind: 'pending'; expiresAt?: Date | undefined; pollAfterMs?: number | undefined }
  | { kind: 'settled'; evidence: Evidence }
  | { kind: 'reversed'; evidence: Evidence; reversalRef: string }
  | { kind: 'refused'; refusal: Refusal }
  /** The operator has no record now. That is no failure, because the call may still arrive. */
  | { kind: 'absent'; asOf: Date }
  | Unreachable

export type CancelOutcome = 'cancelled' | 'too_late' | 'unknown'
export type PartyOutcome =
  | { kind: 'found'; name?: string | undefined; active: boolean }
  | { kind: 'absent' }
  | Unreachable
export type BalanceOutcome =
  | { kind: 'ok'; current: Xof; available?: Xof | undefined; reserved?: Xof | undefined; asOf: Date }
  | Unreachable

/** The health that an operator reports; `until` is the end of announced maintenance. */
export interface Health {
  status: 'available' | 'degraded' | 'unavailable'
  delayMs?: number | undefined
  until?: Date | undefined
}

interface Initiation {
  handle: OperatorHandle
  amount: Xof
  /** The address from `Operator.callbackUrl(operationId)`. */
  callbackUrl: string
  /** 1 for the first call, more for a resend of the same handle. */
  attempt: number
}

export interface CollectRequest extends Initiation {
  /** The payer's E.164 number. A push prompt needs it; a hosted checkout uses it where the payer is fixed. */
  payer?: string | undefined
  description?: string | undefined
  /** The address to which a hosted checkout sends the browser afterwards. */
  successUrl?: string | undefined
  cancelUrl?: string | undefined
  /**
   * True if a restore may have removed a session of this handle from our records. If the operator does not
   * recognise a repeated call, the driver then searches for the session before it creates another.
   */
  searchesFirst?: boolean | undefined
}

export interface DisburseRequest extends Initiation {
  /** The payee's E.164 number. */
  payee: string
  description?: string | undefined
}

export interface ReverseRequest extends Initiation {
  /** The operation to undo, with the operator's id of it if we know that id. */
  original: OperatorHandle
}

/** One HTTP exchange as it may be stored: bodies end after 4,096 characters and contain no secrets. */
export interface OperatorExchange {
  provider: Provider
  correlationId: string
  operation: string
  method: string
  path: string
  /** Null where no answer came. */
  status: number | null
  requestBody: string
  responseBody: string
  durationMs: number
  error?: string | undefined
  at: Date
}

export interface CallContext {
  /**
   * The time by which the call must end, by the machine's clock: a moved clock of the sandbox changes no
   * deadline.
   */
  deadline: Date
  signal?: AbortSignal | undefined
  priority: 'interactive' | 'background'
  /** Receives every exchange of this call, before its outcome is returned. */
  record: (exchange: OperatorExchange) => void
  /** The W3C trace context, which is passed on to the operator. */
  traceparent?: string | undefined
}

/** A callback as it arrived. Header names are in lower case; `receivedAt` is the service's time. */
export interface RawCallback {
  method: string
  headers: Readonly<Record<string, string | undefined>>
  body: Uint8Array
  /** The last part of the path: `{operationId}.{token}`, or `webhook`. */
  pathToken: string
  receivedAt: Date
}

export type CallbackOutcome =
  | { kind: 'rejected'; why: 'path_token' | 'signature' | 'stale' | 'digest' | 'unreadable' }
  | { kind: 'ignored'; eventType: string }
  | CallbackHint

/**
 * The claim of a callback. It moves no money: it only says which operation to query, once per `dedupeKey`.
 */
export interface CallbackHint {
  kind: 'hint'
  dedupeKey: string
  /** The operation from the address; null where one address serves all operations. */
  operationId: string | null
  /**
   * The ids in the callback. If they include `correlationId`, the caller compares it with the stored handle.
   */
  find: Partial<OperatorHandle>
  trust: 'signed' | 'unsigned'
  says: 'settled' | 'refused' | 'pending' | 'reversed'
}

export interface OperatorStatementLine {
  lineNo: number
  postedAt: Date
  type: 'collect' | 'disburse' | 'reversal' | 'fee' | 'transfer' | 'other'
  direction: 'credit' | 'debit'
  operatorRef: string
  clientRef?: string | undefined
  correlationId?: string | undefined
  originalRef?: string | undefined
  counterparty?: string | undefined
  amount: Xof
  fee: Xof
  balanceAfter?: Xof | undefined
}

/**
 * The statement of one day at the operator (00:00 to 24:00 UTC, which is Mali's time). It is `complete` only
 * once that day is over.
 */
export interface OperatorStatement {
  kind: 'statement'
  provider: Provider
  /** `2026-11-21` */
  day: string
  opening?: Xof | undefined
  closing?: Xof | undefined
  complete: boolean
  /** SHA-256 (hex) over the digests of the raw pages: the same pages are imported only once. */
  sha256: string
  lines: readonly OperatorStatementLine[]
}
export type StatementOutcome = OperatorStatement | { kind: 'not_ready' } | Unreachable

/** The properties of an operator that a caller must know before it calls. */
export interface DriverCapabilities {
  action: NextAction['type']
  /**
   * True if an operation that is sent twice is executed at most once. So the service may send an operation
   * again that the operator has no record of.
   */
  createIsIdempotent: boolean
  queryByCorrelationId: boolean
  disburseIsSynchronous: boolean
  reversal: 'none' | 'full' | 'partial'
  reversalWindowHours?: number
  cancel: boolean
  partyLookup: boolean
  statement: 'none' | 'file' | 'paged'
  callbacks: 'none' | 'unsigned' | 'signed'
  promptTtlSeconds: number
}

/**
 * The contract of a driver. Eight rules, each certified by `npm run drivers:check` (`test/conformance`):
 * 1. No method throws for an error of business or network; a throw is a bug.
 * 2. No method repeats a money call by itself, except once with a fresh token after a refusal that names the
 *    old one.
 * 3. `refused` proves that this operation will never be executed; the refusal of a resend proves nothing. If
 *    our float does not cover a disbursement, the outcome is `not_sent`, because it may be sent later.
 * 4. Every exchange reaches `ctx.record`, without secrets; evidence carries the digest of the bytes.
 * 5. The amount of a settlement is the amount that the operator reports.
 * 6. No address outside the configured origin is ever followed.
 * 7. With less than 500 ms left nothing is sent.
 * 8. A record that states another client reference, or another payee of a disbursement, is about another
 *    payment: the outcome is `unknown` or `unreachable`, by `other_payment`. A search leaves out records
 *    with another reference.
 */
export interface OperatorDriver {
  readonly provider: Provider
  readonly name: string
  readonly capabilities: DriverCapabilities
  /** Returns the address that the operator gets for its report on one operation. */
  callbackUrl(operationId: bigint | string): string
  collect(request: CollectRequest, ctx: CallContext): Promise<InitiateOutcome>
  disburse(request: DisburseRequest, ctx: CallContext): Promise<InitiateOutcome>
  reverse(request: ReverseRequest, ctx: CallContext): Promise<InitiateOutcome>
  query(kind: OperationKind, asked: AskedOperation, ctx: CallContext): Promise<QueryOutcome>
  /** Withdraws a collection that its payer has not confirmed yet. */
  cancel?: (handle: OperatorHandle, ctx: CallContext) => Promise<CancelOutcome>
  lookupParty?: (phone: string, ctx: CallContext) => Promise<PartyOutcome>
  balance(ctx: CallContext): Promise<BalanceOutcome>
  health(ctx: CallContext): Promise<Health>
  /** @param day `2026-11-21`, in UTC */
  statement(day: string, ctx: CallContext): Promise<StatementOutcome>
  /** Reads a callback. Pure: it uses no network and no clock except `receivedAt`. */
  parseCallback(raw: RawCallback): CallbackOutcome
  /** Ends the connections; a running call that was sent ends as `unknown`. */
  close(): Promise<void>
}

/** The services that every driver gets. */
export interface DriverDeps {
  log: Log
  /**
   * The service's time, for dates on the wire and in statements. Deadlines and tokens use the machine's
   * clock.
   */
  clock: Clock
  /** The address that operators call back, without a slash at its end. */
  callbackUrl: string
  /** The key of the tokens in callback addresses. */
  callbackSecret: KeyObject
}
