import { z } from 'zod'
import { asPlatform } from '../../database/as-platform.ts'
import type { Services } from '../../context.ts'
import { deadlineIn } from '../../operators/call-limits.ts'
import type { OpenRequest } from '../../requests/open-request.ts'
import { operatorOf } from '../../requests/send.ts'
import { claimOne, exchangeRecorder } from '../../requests/store.ts'
import { limits } from '../../shared/limits.ts'
import { afterOthers, singleFlight } from '../../shared/single-flight.ts'
import { DomainError } from '../../shared/errors.ts'
import { readInput, reference as referenceField } from '../../shared/input.ts'
import { type Checked, checkRequest } from '../../requests/check.ts'
import type { TransactionStatus } from './states.ts'

/** The reason to read without row-level security. */
const reason = 'a payer is not signed in: the reference is the credential'

/** The state of a payment as a payer's browser may see it: never with an amount or a phone number. */
export interface PaymentStatus {
  state: 'success' | 'failed' | 'pending'
  /** True if less was paid than asked. */
  isPartial: boolean
}

/** The state of a payment in our records. */
interface Recorded {
  status: TransactionStatus
  isPartial: boolean
}

const referenceInput = z.object({ reference: referenceField })

/** The state that a payer sees for each status (see docs/design/rules.md#payment-status). */
export const paymentState = {
  success: 'success',
  failed: 'failed',
  cancelled: 'failed',
  expired: 'failed',
  reversed: 'failed',
  pending: 'pending',
  processing: 'pending',
} as const satisfies Record<TransactionStatus, PaymentStatus['state']>

/** The text that a payer sees for each state, and for a payment of less than was asked. */
export const paymentWords = {
  fr: {
    success: 'Le paiement est effectué.',
    partial: 'Un paiement est arrivé, mais une partie du montant manque.',
    failed: "Le paiement n'a pas abouti.",
    pending: "Le paiement n'est pas encore confirmé ; il peut encore aboutir.",
  },
  en: {
    success: 'The payment is complete.',
    partial: 'A payment arrived, but a part of the amount is missing.',
    failed: 'The payment was not completed.',
    pending: 'The payment is not confirmed yet; it may still complete.',
  },
} as const

/**
 * Asks the operator about an open payment and settles it if the answer is final. A payment that is over is
 * answered from the database. The operator is asked about each payment at most once in three seconds, for all
 * callers together; calls in between are answered from the database.
 * @param merchantId the merchant, because two merchants may use the same reference; null where unknown
 * @throws DomainError INVALID_INPUT, NOT_FOUND, AMBIGUOUS_REFERENCE, OPERATOR_UNREACHABLE (nothing changed;
 *   ask again)
 * @see docs/design/rules.md#payment-status
 */
export async function checkPayment(
  services: Services,
  reference: string,
  merchantId: number | null,
): Promise<PaymentStatus> {
  const { rows } = await asPlatform(services, reason).pool.query<Recorded & { id: bigint }>({
    name: 'payments_by_reference',
    text: `SELECT id, ${recordedColumns} FROM transaction
      WHERE reference = $1 AND ($2::int IS NULL OR merchant_id = $2)
        AND transaction_type <> 'balance_check'
      LIMIT 2`,
    values: [readInput(referenceInput, { reference }).reference, merchantId],
  })
  const [payment, other] = rows
  if (!payment) throw new DomainError('NOT_FOUND', 'No payment has this reference.')
  if (other) throw new DomainError('AMBIGUOUS_REFERENCE')
  const { status, isPartial } =
    paymentState[payment.status] === 'pending' ? await askOperator(services, payment) : payment
  return { state: paymentState[status], isPartial: isPartial && paymentState[status] === 'success' }
}

/** The columns of `Recorded`. */
const recordedColumns = 'status, coalesce(settled_amount < amount, false) AS "isPartial"'

/** Names the check of a payment under way. */
const checkKey = (id: bigint) => `check:transaction:${id}`

async function askOperator(services: Services, payment: { id: bigint }): Promise<Recorded> {
  const key = checkKey(payment.id)
  // `key` is in flight only while a claimed request is checked: a caller that finds it joins this check.
  const request = services.inFlight.has(key)
    ? null
    : await singleFlight(services, `claim:transaction:${payment.id}`, () =>
        claimOne(asPlatform(services, reason).pool, payment.id),
      )
  const checked = request
    ? await singleFlight(services, key, () => checkRequest(services, request))
    : await (services.inFlight.get(key) as Promise<Checked> | undefined)
  const status = checked?.status as TransactionStatus | undefined
  // The request could not be claimed: it has ended, or another call asked the operator less than three
  // seconds ago. Or it was paid, and the record tells how much of it.
  if (!checked || status === undefined || paymentState[status] === 'success')
    return readRecorded(services, payment.id)
  if (!checked.reached && paymentState[status] === 'pending') throw new DomainError('OPERATOR_UNREACHABLE')
  return { status, isPartial: false }
}

async function readRecorded(services: Services, id: bigint): Promise<Recorded> {
  const { rows } = await asPlatform(services, reason).pool.query<Recorded>({
    name: 'transaction_recorded',
    text: `SELECT ${recordedColumns} FROM transaction WHERE id = $1`,
    values: [id],
  })
  return rows[0] ?? { status: 'pending', isPartial: false }
}

/**
 * Asks the operator of an open collection to withdraw it, then asks for its outcome. Only that second answer
 * moves the collection: its payer may have confirmed it meanwhile. A collection that provably never left
 * ends; one that may have left is not sent again by this call. A call that comes meanwhile joins the first
 * one: at a slow operator, calls would else queue up.
 * @returns the status afterwards; null where another call asked the operator less than three seconds ago
 */
export function withdrawPayment(services: Services, id: bigint): Promise<TransactionStatus | null> {
  return singleFlight(services, `withdraw:transaction:${id}`, async () => {
    const request = await claimOne(asPlatform(services, reason).pool, id)
    if (!request) return null
    const { status } = await afterOthers(services, checkKey(id), () => withdraw(services, request))
    return status as TransactionStatus
  })
}

async function withdraw(services: Services, request: OpenRequest): Promise<Checked> {
  const { subject, state, handle } = request
  const operator = operatorOf(services, request)
  const isAtOperator = state === 'sending' || state === 'accepted' || state === 'doubt'
  if (subject === 'collection' && isAtOperator && operator.capabilities.cancel && operator.cancel) {
    const record = exchangeRecorder(services.sharedStatements, services.log, request)
    const deadline = deadlineIn(limits.operatorQueryDeadlineMs)
    await operator.cancel(handle, { deadline, priority: 'interactive', record })
  }
  return checkRequest(services, { ...request, cancelRequested: true })
}
