import type { Recording } from '../../audit/audit-log.ts'
import type { AccountCaller } from '../../identity/callers/actor.ts'
import type { Context } from '../../context.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'
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

/** The result of a payment that was just requested (see docs/design/rules.md#collections). */
export interface Initiation {
  transactionId: bigint
  reference: string
  amount: Xof
  paymentMethod: Provider
  /** `pending_approval` while the deposit waits for approval: the transaction itself is then `pending`. */
  status: TransactionStatus | 'pending_approval'
  /** The address of the hosted page on which the customer pays; null if the operator has none. */
  paymentUrl: string | null
  failureReason: string | null
  failureMessage: string | null
  initiatedAt: Date
}

/** The payment to record and its caller. */
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

/** Finds the driver of an operator. @throws DomainError INVALID_INPUT where the service has no such driver */
export function connectedOperator(ctx: Context, provider: Provider): Operator {
  const operator = ctx.operators.find(provider)
  if (!operator)
    throw invalidInput([
      {
        field: 'paymentMethod',
        message: 'names an operator that this service is not set up for; choose another',
      },
    ])
  return operator
}

/** Returns the initiation if the payment did not fail. @throws DomainError PAYMENT_REFUSED if it failed */
export function answered(initiation: Initiation): Initiation {
  const { status, failureReason } = initiation
  if (status !== 'failed') return initiation
  const words = failureOf(failureReason)
  throw new DomainError('PAYMENT_REFUSED', words ? failureReasons[words].messageEn : undefined, {
    initiation,
  })
}

/** A transaction that already has the reference. */
export type Existing = Initiation & {
  phone: string
  type: 'pay' | 'deposit' | 'balance_check'
  refundOfId: bigint | null
}

const transactionByReference = sqlFunction('transaction_by_reference', {
  takes: { named: 'text', merchant: 'int' },
  gives: {
    transactionId: 'bigint',
    reference: 'text',
    amount: 'bigint',
    paymentMethod: 'provider',
    status: sqlType<TransactionStatus>('transaction_status'),
    paymentUrl: 'text?',
    failureReason: 'text?',
    failureMessage: 'text?',
    initiatedAt: 'timestamptz',
    phone: 'text',
    type: sqlType<Existing['type']>('transaction_type'),
    refundOfId: 'bigint?',
  },
})

/** Finds the merchant's transaction with a reference. */
export async function findExisting(
  ctx: Context,
  { reference, merchantId }: Pick<InitiationItem, 'reference' | 'merchantId'>,
): Promise<Existing | undefined> {
  const given = { named: reference, merchant: merchantId }
  const [existing] = await transactionByReference(ctx.database.merchantPool, given)
  return existing
}

/**
 * Whether an earlier try of this same request, under the same `Idempotency-Key`, made the existing
 * transaction. If so, the request is answered with this transaction; any other request is refused because the
 * reference is taken.
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

/**
 * Makes the refusal for an operator that is down or has no free slot. Nothing was recorded, so a retry is
 * safe.
 */
export function operatorUnavailable(retryAfterMs: number | undefined): DomainError {
  return new DomainError('OPERATOR_UNAVAILABLE', undefined, {
    retryAfterS: Math.ceil((retryAfterMs ?? 1_000) / 1_000),
  })
}

/**
 * Sends a recorded request. From here on the payment goes on even if this process fails: if the operator's
 * answer could not be recorded, the operator is asked again later, and until then the merchant sees the
 * payment as open.
 * @param open the status of a payment whose outcome is not known yet
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
    ctx.log.error(
      { err: error, about: originOf(request) },
      'the answer of the operator to a payment could not be recorded',
    )
    return notSent(open)
  }
}

/** Makes the answer for a payment whose outcome is not known. */
export function notSent(open: TransactionStatus): SendOutcome {
  return { status: open, paymentUrl: null, reached: false, refusal: null }
}

/**
 * The columns that SQL functions return for each transaction to record; null where it was not recorded.
 */
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
  /**
   * True if the operator executed the collection before a restore: then the operator is only asked about it.
   */
  isOrphan: boolean
}

/**
 * Asks the payer of a collection that was just recorded. An orphan is not sent: its payer was asked before.
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

/** Removes the fields without a value from the data of a request; the names are those of REST. */
export function requestData(asked: Record<string, unknown>): OpenRequest['request'] {
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value != null))
}
