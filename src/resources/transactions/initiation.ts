import type { Recording } from '../../audit/audit-log.ts'
import type { AccountCaller } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import { singleFlight } from '../../shared/single-flight.ts'
import { failureOf, failureReasons } from '../../operators/failure-reasons.ts'
import type { Operator } from '../../operators/registry.ts'
import { originOf, newRequest, type OpenRequest } from '../../requests/open-request.ts'
import { DomainError } from '../../shared/errors.ts'
import { invalidInput } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import type { Xof } from '../../shared/money.ts'
import type { Provider } from '../../shared/providers.ts'
import { type SendOutcome, sendRequest } from '../../requests/send.ts'
import type { TransactionStatus } from './states.ts'

/** The payment initiation result (specification). */
export interface Initiation {
  transactionId: bigint
  reference: string
  amount: Xof
  paymentMethod: Provider
  /** `pending_approval` while people have yet to approve it: the transaction itself is then `pending`. */
  status: TransactionStatus | 'pending_approval'
  /** Hosted page of a checkout operator. */
  paymentUrl: string | null
  failureReason: string | null
  failureMessage: string | null
  initiatedAt: Date
}

/** What is to be made, and for whom. */
export interface InitiationItem extends AccountCaller {
  recording: Recording
  provider: Provider
  phone: string
  amount: Xof
  reference: string
  /** The identity under which the operator is asked: see `identityOf`. */
  identity: string
  request: OpenRequest['request']
}

/** @throws DomainError INVALID_INPUT where the service does not talk to it */
export function connectedOperator(ctx: Context, provider: Provider): Operator {
  const operator = ctx.operators.find(provider)
  if (!operator) throw invalidInput([{ field: 'paymentMethod', message: 'is not connected to this service' }])
  return operator
}

/** @throws DomainError PAYMENT_REFUSED where the payment was */
export function answered(initiation: Initiation): Initiation {
  const { status, failureReason } = initiation
  if (status !== 'failed') return initiation
  const words = failureOf(failureReason)
  throw new DomainError('PAYMENT_REFUSED', words ? failureReasons[words].messageEn : undefined, {
    initiation,
  })
}

/** A transaction that has the reference already. */
export type Existing = Initiation & {
  phone: string
  type: 'pay' | 'deposit' | 'balance_check'
  refundOfId: bigint | null
}

/** The merchant's transaction of that reference. */
export async function findExisting(
  ctx: Context,
  { reference, merchantId }: Pick<InitiationItem, 'reference' | 'merchantId'>,
): Promise<Existing | undefined> {
  const { rows } = await ctx.database.merchantPool.query<Existing>({
    name: 'existing_transaction',
    text: `SELECT id AS "transactionId", reference, amount, payment_method AS "paymentMethod", status,
        payment_url AS "paymentUrl", failure_reason AS "failureReason", failure_message AS "failureMessage",
        created_at AS "initiatedAt", customer_phone AS phone, transaction_type AS type,
        refund_of_id AS "refundOfId"
      FROM transaction WHERE reference = $1 AND merchant_id = $2`,
    values: [reference, merchantId],
  })
  return rows[0]
}

/**
 * Whether a request that goes on with what was begun under its `Idempotency-Key` finds its own there. Then
 * it is answered as the first time; anybody else hears that the reference is taken.
 */
export function isOwn(
  ctx: Context,
  existing: Existing | undefined,
  asked: Pick<Existing, 'type'> & Partial<Existing>,
): existing is Existing {
  return (
    ctx.idempotentOperation?.isResumed === true &&
    existing !== undefined &&
    existing.initiatedAt >= ctx.idempotentOperation.since &&
    Object.entries(asked).every(([name, value]) => existing[name as keyof Existing] === value)
  )
}

export function duplicateReference(existing: Existing | undefined): DomainError {
  return new DomainError('DUPLICATE_REFERENCE', undefined, {
    ...(existing && { existingTransaction: { id: existing.transactionId, status: existing.status } }),
  })
}

/** Nothing was recorded, and a moment later the operator may be there again. */
export function operatorUnavailable(retryAfterMs: number | undefined): DomainError {
  return new DomainError('OPERATOR_UNAVAILABLE', undefined, {
    retryAfterS: Math.ceil((retryAfterMs ?? 1_000) / 1_000),
  })
}

/**
 * Sends what is on record. From here on the payment is under way whatever happens to us: what could not be
 * noted is asked about later, and the merchant is told the truth, that it is open.
 * @param open the status of what is under way
 */
export async function sendOnce(
  ctx: Context,
  request: OpenRequest,
  deadline: Date,
  open: TransactionStatus,
): Promise<SendOutcome> {
  try {
    return await singleFlight(ctx, `send:${request.id}`, () =>
      sendRequest(ctx, request, 'interactive', deadline),
    )
  } catch (error) {
    ctx.log.error({ err: error, about: originOf(request) }, 'an answer of an operator was not noted')
    return notSent(open)
  }
}

/** The answer about a payment of which nothing is known yet. */
export function notSent(open: TransactionStatus): SendOutcome {
  return { status: open, paymentUrl: null, reached: false, refusal: null }
}

/** A collection that was recorded just now. */
/** What the statement that records transactions says of each; null where it was not made. */
export const madeTypes = {
  transactionId: 'bigint?',
  requestId: 'bigint?',
  correlationId: 'uuid?',
  createdAt: 'timestamptz?',
  isOrphan: 'boolean',
} as const

export interface MadeCollection {
  transactionId: bigint
  requestId: bigint
  correlationId: string
  createdAt: Date
  /** The operator executed it before a restore: it is only asked about. */
  isOrphan: boolean
}

/**
 * Asks the payer of a collection that was recorded just now, for the first time.
 * @throws DomainError PAYMENT_REFUSED
 */
export async function askPayer(
  ctx: Context,
  item: Pick<InitiationItem, 'merchantId' | 'provider' | 'amount' | 'phone' | 'reference' | 'request'>,
  made: MadeCollection,
  deadline: Date,
): Promise<Initiation> {
  const { merchantId, provider, amount, phone, reference, request } = item
  const { transactionId, requestId: id, correlationId, createdAt } = made
  const asked = newRequest({
    id,
    merchantId,
    provider,
    amount,
    phone,
    correlationId,
    request,
    subject: 'collection',
    subjectId: transactionId,
    status: 'pending',
    leftMs: limits.collectionLifetimeMs,
  })
  const sent = made.isOrphan ? notSent('pending') : await sendOnce(ctx, asked, deadline, 'pending')
  return answered({
    transactionId,
    reference,
    amount,
    paymentMethod: provider,
    status: sent.status as TransactionStatus,
    paymentUrl: sent.paymentUrl,
    failureReason: sent.refusal?.reason ?? null,
    failureMessage: sent.refusal?.message ?? null,
    initiatedAt: createdAt,
  })
}

/** What the merchant asked, in the words of REST, without what it left out. */
export function requestData(asked: Record<string, unknown>): OpenRequest['request'] {
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value != null))
}
