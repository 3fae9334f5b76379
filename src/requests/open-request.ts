import type { FailureReason } from '../operators/failure-reasons.ts'
import type { CallbackHint, OperationKind, OperatorHandle } from '../operators/operator.ts'
import type { Xof } from '../shared/money.ts'
import type { Provider } from '../shared/providers.ts'

/** What a request is for: a transaction, of one who pays or is paid, a payout, or a batch's recipient. */
export type Subject = 'collection' | 'deposit' | 'payout' | 'recipient'

/**
 * A request to an operator that is not known to be over. Its identity was stored before the first byte left.
 */
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
  /** `sending`: it may have left. `unsent`: it provably did not. `doubt`: asked for and not understood. */
  state: 'sending' | 'unsent' | 'accepted' | 'doubt' | 'settled' | 'refused' | 'closed'
  attempt: number
  /** When it was taken to be asked about, by the database's clock; what is heard of it is no older. */
  claimedAt?: Date
  checkCount: number
  // Times as of the claim, computed by the database: a process whose clock is wrong decides nothing by it.
  /** Since it was recorded, in service time. */
  ageMs: number
  /** Until what it is for ends unpaid, in service time; null: never. */
  leftMs: number | null
  /** Since that end, or since it ended without one, in service time; negative before. */
  sinceOverMs: number
  /** Since what it is for ended, or was paid after its end; while open, since it was recorded. */
  sinceSettledMs: number
  /** Since it was sent last, in real time. */
  sinceSentMs?: number
  /** What the merchant asked, as stored with what it is for. */
  request: { description?: string; return_url?: string; cancel_url?: string }
  /** The status of what it is for. */
  status: string
  /** Why its operator turned its last send away at the door, so that it may be sent again. */
  rejectedReason?: FailureReason | null
  /** Whether the merchant wants no more of it than was sent: its batch is being cancelled. */
  cancelRequested?: boolean
  /** Whether people approved it: then no caller waits for its outcome. */
  isApproved?: boolean
  /** What its last callback said. */
  claimed: CallbackHint['says'] | null
  /** Since it said so, in service time. */
  sinceNotifiedMs?: number | null
}

/** What a request is for, as the ledger names it. */
export function originOf({
  subject,
  subjectId,
}: Pick<OpenRequest, 'subject' | 'subjectId'>): `${'transaction' | 'payout' | 'recipient'}:${bigint}` {
  return subject === 'payout' || subject === 'recipient'
    ? `${subject}:${subjectId}`
    : `transaction:${subjectId}`
}

/** What the statement that records a request tells of it. */
export interface Recorded
  extends Pick<
    OpenRequest,
    'id' | 'merchantId' | 'subject' | 'subjectId' | 'provider' | 'amount' | 'phone' | 'request' | 'status'
  > {
  correlationId: string
  /** Until what it is for ends unpaid; null: never. */
  leftMs: number | null
}

/** A request that was recorded just now, to be sent for the first time. */
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

/** Provably no send of this request reached its operator before the present one. */
export function nothingLeft(request: OpenRequest): boolean {
  return request.attempt === 1 || request.state === 'unsent'
}

/** A disbursement that was begun just now, as the statement that began it tells of it. */
export interface BegunRow extends Pick<OpenRequest, 'merchantId' | 'amount' | 'phone'> {
  requestId: bigint
  correlationId: string
}

/** The request of what was begun just now, to be sent for the first time. */
export function begunRequest(
  { requestId: id, merchantId, amount, phone, correlationId }: BegunRow,
  about: Pick<OpenRequest, 'subject' | 'subjectId' | 'provider' | 'request'>,
): OpenRequest {
  const row = { id, merchantId, amount, phone, correlationId }
  return newRequest({ ...about, ...row, status: 'processing', leftMs: null })
}
