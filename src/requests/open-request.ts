import type { FailureReason } from '../operators/failure-reasons.ts'
import type { CallbackHint, OperationKind, OperatorHandle } from '../operators/operator.ts'
import type { Xof } from '../shared/money.ts'
import type { Provider } from '../shared/providers.ts'

/** The kind of row that a request is for: a collection, a deposit, a payout, or a recipient of a batch. */
export type Subject = 'collection' | 'deposit' | 'payout' | 'recipient'

/** A request to an operator that may still be open. Its identity was stored before its first byte left. */
export interface OpenRequest {
  id: bigint
  merchantId: number
  subject: Subject
  /** The id of the transaction, of the payout, or of the recipient. */
  subjectId: bigint
  provider: Provider
  kind: Exclude<OperationKind, 'reverse'>
  amount: Xof
  /** E.164 */
  phone: string
  handle: OperatorHandle
  /**
   * `sending`: it may have left. `unsent`: the operator provably executed nothing. `doubt`: the operator may
   * have it.
   */
  state: 'sending' | 'unsent' | 'accepted' | 'doubt' | 'settled' | 'refused' | 'closed'
  attempt: number
  /**
   * The time at which this process claimed the request, by the database's clock; absent if the request was
   * begun just now. The answers that the process gets after the claim are newer.
   */
  claimedAt?: Date
  checkCount: number
  // The database computes these times as of the claim, so that a wrong clock of this process decides nothing.
  /** Time since the request was recorded, in service time. */
  ageMs: number
  /** Time until the subject expires unpaid, in service time; null: it never expires. */
  leftMs: number | null
  /**
   * Time since the subject expired (negative before), or since it settled if it never expires; 0 if it never
   * expires and has not settled. In service time.
   */
  sinceOverMs: number
  /** Time since the subject settled; while it is open, time since the request was recorded. */
  sinceSettledMs: number
  /** Time since the last send, in real time. */
  sinceSentMs?: number
  /** The merchant's options, as stored with the subject. */
  request: { description?: string; return_url?: string; cancel_url?: string }
  status: string
  /** Why the operator rejected the last send before execution, so that the service may send again. */
  rejectedReason?: FailureReason | null
  /**
   * True if no further send is wanted: the batch of the recipient is being cancelled, or the payer withdraws
   * the collection.
   */
  cancelRequested?: boolean
  /** True if people approved the subject: then no caller waits for its outcome. */
  isApproved?: boolean
  /** The outcome that the last callback claimed. */
  claimed: CallbackHint['says'] | null
  /** Time since that callback, in service time; null if there was none. */
  sinceNotifiedMs?: number | null
}

/** Returns the name of a request's subject in the ledger. */
export function originOf({
  subject,
  subjectId,
}: Pick<OpenRequest, 'subject' | 'subjectId'>): `${'transaction' | 'payout' | 'recipient'}:${bigint}` {
  return subject === 'payout' || subject === 'recipient'
    ? `${subject}:${subjectId}`
    : `transaction:${subjectId}`
}

/** The row that the statement which records a request returns. */
export interface Recorded
  extends Pick<
    OpenRequest,
    'id' | 'merchantId' | 'subject' | 'subjectId' | 'provider' | 'amount' | 'phone' | 'request' | 'status'
  > {
  correlationId: string
  /** Time until the subject expires unpaid; null: it never expires. */
  leftMs: number | null
}

/** Returns a request that was recorded just now, ready for its first send. */
export function newRequest({ correlationId, ...recorded }: Recorded): OpenRequest {
  return {
    ...recorded,
    kind: recorded.subject === 'collection' ? 'collect' : 'disburse',
    handle: { correlationId, clientRef: correlationId },
    state: 'sending',
    attempt: 1,
    checkCount: 0,
    ageMs: 0,
    sinceOverMs: 0,
    sinceSettledMs: 0,
    claimed: null,
  }
}

/** True if provably no earlier send of this request reached its operator. */
export function nothingLeft(request: OpenRequest): boolean {
  return request.attempt === 1 || request.state === 'unsent'
}

/** A disbursement that was begun just now, as the statement that began it returns it. */
export interface BegunRow extends Pick<OpenRequest, 'merchantId' | 'amount' | 'phone'> {
  requestId: bigint
  correlationId: string
}

/** Returns the request of a disbursement that was begun just now, ready for its first send. */
export function begunRequest(
  { requestId: id, merchantId, amount, phone, correlationId }: BegunRow,
  about: Pick<OpenRequest, 'subject' | 'subjectId' | 'provider' | 'request'>,
): OpenRequest {
  const row = { id, merchantId, amount, phone, correlationId }
  return newRequest({ ...about, ...row, status: 'processing', leftMs: null })
}
