import type { KeyObject } from 'node:crypto'
import type { Clock } from '../shared/clock.ts'
import type { Xof } from '../shared/money.ts'
import type { Provider } from '../shared/providers.ts'
import type { Log } from '../telemetry/log.ts'
import type { FailureReason } from './failure-reasons.ts'

/** What an operator can be asked to do with money. */
export type OperationKind = 'collect' | 'disburse' | 'reverse'

/** Why a call was provably never executed. */
export const notSentCauses = [
  'circuit_open',
  'bulkhead_full',
  'rate_limited',
  'dns',
  'connect',
  'tls',
  'token',
  'deadline_before_send',
  // Our own account there does not cover it: the operator turned it away at the door.
  'float_empty',
] as const
export type NotSentCause = (typeof notSentCauses)[number]

/** Why nobody can say whether a call was executed. */
export type UnknownCause =
  | 'response_lost'
  | 'headers_timeout'
  | 'body_timeout'
  | 'deadline'
  | 'http_5xx'
  | 'unreadable'
  | 'unmapped'
  /** A record in good order whose amount or currency cannot be read: see `movedAmount`. */
  | 'unreadable_amount'
  /** An answer in good order, which says nothing of the earlier sends. */
  | 'resend_refused'

/** All that is needed to ask about an operation again after a restart; stored as JSON. */
export interface OperatorHandle {
  /** UUID v4 made and stored by us before the first byte leaves; never replaced by another one. */
  correlationId: string
  /** Our reference, which the operator repeats in its records and statements. */
  clientRef: string
  /** The operator's reference of the money movement. */
  operatorRef?: string | undefined
  /** The operator's name for the request, in protocols that answer first and work later. */
  serverCorrelationId?: string | undefined
  /** The hosted checkout session. */
  sessionId?: string | undefined
  /** How many more times the operator wants to be asked; absent where it does not count. */
  pollsLeft?: number | undefined
}

/** What the operator says about money that moved. `amount` is its word, never ours. */
export interface Evidence {
  operatorRef: string
  /** The number on the customer's receipt, where it differs from `operatorRef`. */
  receipt?: string | undefined
  amount: Xof
  fee?: Xof | undefined
  settledAt: Date
  /** E.164 number of the other side. */
  counterparty?: string | undefined
  source: 'sync' | 'callback' | 'query' | 'statement'
  /** SHA-256 (hex) of the raw bytes that said so. */
  digest: string
}

/** A definitive no. `code` is the operator's own word. */
export interface Refusal {
  reason: FailureReason
  code: string
  message?: string | undefined
  digest?: string | undefined
}

/** What the customer does next: answers a prompt on the telephone, or follows an address. */
export type NextAction = { type: 'push' } | { type: 'redirect'; url: string }

export interface AcceptedOutcome {
  kind: 'accepted'
  /** The operator knew the correlation id already: ask it what became of the first call. */
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
/** Provably nothing was executed by this call. */
export interface NotSent {
  kind: 'not_sent'
  cause: NotSentCause
  retryAfterMs?: number | undefined
  /** Where the operator said why (`float_empty`): the same operation may be sent again. */
  refusal?: Refusal | undefined
}
/** It may have been executed: ask, never assume. */
export interface Unknown {
  kind: 'unknown'
  cause: UnknownCause
  handle: OperatorHandle
}
/** Nothing was learnt. */
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
  /** The operator has no record now. That is no failure: the call may still arrive. */
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

/** How an operator says that it feels; `until` is the end of announced maintenance. */
export interface Health {
  status: 'available' | 'degraded' | 'unavailable'
  delayMs?: number | undefined
  until?: Date | undefined
}

interface Initiation {
  handle: OperatorHandle
  amount: Xof
  /** From `Operator.callbackUrl(operationId)`. */
  callbackUrl: string
  /** 1 for the first call, more for a resend of the same handle. */
  attempt: number
}

export interface CollectRequest extends Initiation {
  /** E.164. A push prompt needs it; a hosted checkout uses it where the payer is locked. */
  payer?: string | undefined
  description?: string | undefined
  /** Where a hosted checkout sends the browser afterwards. */
  successUrl?: string | undefined
  cancelUrl?: string | undefined
  /**
   * The operator may have a session under this handle that our records lost (a restore): a protocol that does
   * not recognise a repeated call searches for it before it creates another.
   */
  searchesFirst?: boolean | undefined
}

export interface DisburseRequest extends Initiation {
  /** E.164. */
  payee: string
  payeeName?: string | undefined
  description?: string | undefined
}

export interface ReverseRequest extends Initiation {
  /** What is undone, with the operator's reference (`operatorRef` or `sessionId`). */
  original: OperatorHandle
}

/** One HTTP exchange, as it may be kept: bodies end after 4 KiB and carry no secrets. */
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
  /** Absolute, by the machine's own clock: the sandbox may move its clock, never a timeout. */
  deadline: Date
  signal?: AbortSignal | undefined
  priority: 'interactive' | 'background'
  /** Receives every exchange of this call, before its outcome is returned. */
  record: (exchange: OperatorExchange) => void
  /** W3C trace context, passed on to the operator. */
  traceparent?: string | undefined
}

/** A callback as it came. Header names are in lower case; `receivedAt` is the service's time. */
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
 * What a callback claims. Only a query moves money; this says which operation to query, and once per
 * `dedupeKey`.
 */
export interface CallbackHint {
  kind: 'hint'
  dedupeKey: string
  /** From the address; null where one address serves all operations. */
  operationId: string | null
  /** The caller compares `correlationId`, where there is one, with the stored handle. */
  find: Partial<OperatorHandle>
  trust: 'signed' | 'unsigned'
  says: 'settled' | 'refused' | 'pending' | 'reversed'
  /** The operator wrote it more than a quarter of an hour ago. */
  late: boolean
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
 * A day at the operator (00:00 to 24:00 UTC, which is Mali's time). `complete` only once that day is over.
 */
export interface OperatorStatement {
  kind: 'statement'
  provider: Provider
  /** `2026-11-21` */
  day: string
  opening?: Xof | undefined
  closing?: Xof | undefined
  complete: boolean
  /** SHA-256 (hex) of the raw pages: the same bytes are imported once. */
  sha256: string
  lines: readonly OperatorStatementLine[]
}
export type StatementOutcome = OperatorStatement | { kind: 'not_ready' } | Unreachable

/** What a caller must know of an operator before it asks. */
export interface DriverCapabilities {
  action: NextAction['type']
  /** A repeated correlation id is refused or replayed, so that an absent operation may be sent again. */
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
 * What a driver must do. Seven rules, each of them certified by `npm run drivers:check` (`test/conformance`):
 * 1. No method throws for what a business or a network may do; a throw is a bug.
 * 2. No method repeats a money call by itself, except once with a fresh token after a refusal that names the
 *    old one.
 * 3. `refused` proves that this operation will never be executed; the refusal of a resend proves nothing.
 *    That our float is empty refuses no disbursement for ever: it is `not_sent`.
 * 4. Every exchange reaches `ctx.record`, without secrets; evidence carries the digest of the bytes.
 * 5. A settled amount is the operator's word.
 * 6. No address outside the configured origin is ever followed.
 * 7. With less than 500 ms left nothing is sent.
 */
export interface OperatorDriver {
  readonly provider: Provider
  readonly name: string
  readonly capabilities: DriverCapabilities
  /** The address that the operator is given for its report on one operation. */
  callbackUrl(operationId: bigint | string): string
  collect(request: CollectRequest, ctx: CallContext): Promise<InitiateOutcome>
  disburse(request: DisburseRequest, ctx: CallContext): Promise<InitiateOutcome>
  reverse(request: ReverseRequest, ctx: CallContext): Promise<InitiateOutcome>
  query(kind: OperationKind, handle: OperatorHandle, ctx: CallContext): Promise<QueryOutcome>
  /** Withdraws a collection that nobody has confirmed yet. */
  cancel?: (handle: OperatorHandle, ctx: CallContext) => Promise<CancelOutcome>
  lookupParty?: (phone: string, ctx: CallContext) => Promise<PartyOutcome>
  balance(ctx: CallContext): Promise<BalanceOutcome>
  health(ctx: CallContext): Promise<Health>
  /** @param day `2026-11-21`, in UTC */
  statement(day: string, ctx: CallContext): Promise<StatementOutcome>
  /** Pure: no network, no clock but `receivedAt`. */
  parseCallback(raw: RawCallback): CallbackOutcome
  /** Ends its connections; calls in flight end as `unknown`. */
  close(): Promise<void>
}

/** What every driver is built with. */
export interface DriverDeps {
  log: Log
  /** The service's time: dates on the wire and in statements. Deadlines and tokens go by the machine's. */
  clock: Clock
  /** The address that operators call back, without a slash at its end. */
  callbackUrl: string
  /** Key of the tokens in callback addresses. */
  callbackSecret: KeyObject
}
