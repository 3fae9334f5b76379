import type { CheckoutSettings } from '../config/operators.ts'
import type { Clock } from '../shared/clock.ts'
import { createHttpClient, type HttpResult } from './http-client.ts'
import type { CallContext, Evidence, OperationKind, QueryOutcome, Refusal } from './operator.ts'
import { currency } from '../shared/money.ts'
import { readAddress } from '../shared/web-address.ts'
import { checkoutRefusal, readCheckoutError } from './checkout-session-errors.ts'
import type { StatedPayment } from './same-payment.ts'
import { keptFee, movedAmount, type WireRecord } from './wire-record.ts'

export interface CheckoutCall {
  operation: string
  method: 'GET' | 'POST'
  /** The path below the base address, with its leading slash and its query. */
  path: string
  correlationId: string
  body?: unknown
  /** Sends the correlation id as the idempotency key. */
  idempotent?: boolean
  answerMaxBytes?: number
}

/** The API of a hosted-checkout operator, with the key of our wallet. */
export interface CheckoutWire {
  call(call: CheckoutCall, ctx: CallContext): Promise<HttpResult>
  close(): Promise<void>
}

export function createCheckoutWire(settings: CheckoutSettings, clock: Clock): CheckoutWire {
  const base = new URL(settings.baseUrl)
  const root = base.href.replace(/\/+$/, '')
  const rate = settings.limits.requestsPerSecond
  const http = createHttpClient(settings.provider, [base.origin], rate, () => clock.now())
  return {
    call: ({ body, idempotent = false, path, ...call }, ctx) =>
      http.send(
        {
          ...call,
          url: new URL(root + path),
          body: body === undefined ? undefined : JSON.stringify(body),
          headers: {
            accept: 'application/json',
            authorization: `Bearer ${settings.apiKey.reveal()}`,
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            ...(idempotent ? { 'idempotency-key': call.correlationId } : {}),
            ...(ctx.traceparent === undefined ? {} : { traceparent: ctx.traceparent }),
          },
        },
        ctx,
      ),
    close: () => http.close(),
  }
}

/** The largest allowed difference between the operator's clock and ours. */
const clockSkewMs = 60 * 1_000

/** A checkout session or a payout, in a common form. */
export interface CheckoutRecord {
  id: string
  /**
   * The state. `unclear`: the service does not know the combination of words; a query reports it as pending.
   */
  stands: 'open' | 'unclear' | 'paid' | 'reversed' | 'failed'
  /** The operator's own words for the state, for the log. */
  status: string
  expiresAt: Date | undefined
  createdAt: number
  launchUrl: string | undefined
  record: WireRecord
}

/**
 * Reads a session. It is paid if it is complete and its payment succeeded, and reversed if it was refunded
 * after that. A failed try leaves it open; only an expired session has failed.
 */
export function readSession(
  record: WireRecord | undefined,
  launchUrlField: string,
): CheckoutRecord | undefined {
  const id = record?.text('id')
  const checkout = record?.word('checkout_status')
  if (!record || id === undefined || checkout === undefined) return undefined
  const payment = record.word('payment_status') ?? ''
  const paid = checkout === 'complete' && payment === 'succeeded'
  const known = checkout === 'open' || (checkout === 'complete' && payment === 'processing')
  const open = known ? 'open' : 'unclear'
  return {
    id,
    stands: paid
      ? record.date('when_refunded')
        ? 'reversed'
        : 'paid'
      : checkout === 'expired'
        ? 'failed'
        : open,
    status: `${checkout}/${payment}`,
    expiresAt: record.date('when_expires'),
    createdAt: record.date('when_created')?.getTime() ?? 0,
    launchUrl: readAddress(record.text(launchUrlField) ?? '').href,
    record,
  }
}

const payoutStates = new Map<string, CheckoutRecord['stands']>([
  ['processing', 'open'],
  ['succeeded', 'paid'],
  ['failed', 'failed'],
  ['reversed', 'reversed'],
])

export function readPayout(record: WireRecord | undefined): CheckoutRecord | undefined {
  const id = record?.text('id')
  const status = record?.word('status')
  if (!record || id === undefined || status === undefined) return undefined
  return {
    id,
    stands: payoutStates.get(status) ?? 'unclear',
    status,
    expiresAt: undefined,
    createdAt: record.date('timestamp')?.getTime() ?? 0,
    launchUrl: undefined,
    record,
  }
}

/** Returns the names of the payment that a session or payout states. */
export function statedByCheckout({ record }: CheckoutRecord): StatedPayment {
  return { clientRef: record.text('client_reference'), payee: record.text('mobile') }
}

/** Reads the answer of a search; undefined if it has no list of results. Unreadable entries are left out. */
export function readFound(
  record: WireRecord | undefined,
  read: (entry: WireRecord) => CheckoutRecord | undefined,
): readonly CheckoutRecord[] | undefined {
  return record?.list('result')?.flatMap((entry) => read(entry) ?? [])
}

/**
 * Returns the evidence of a paid or reversed record; undefined if its amount or currency is unreadable (see
 * `movedAmount`).
 */
export function checkoutEvidence(
  { id, record }: CheckoutRecord,
  kind: OperationKind,
  source: Evidence['source'],
  digest: string,
  now: Date,
): Evidence | undefined {
  const amount = movedAmount(record, 'receive_amount', 'amount')
  if (amount === undefined || (record.text('currency') ?? currency).toUpperCase() !== currency)
    return undefined
  return {
    operatorRef: record.text('transaction_id') ?? id,
    amount,
    fee: keptFee(record.amount('fee')),
    settledAt:
      (kind === 'reverse' ? record.date('when_refunded') : record.date('when_completed', 'timestamp')) ?? now,
    counterparty: record.text('mobile', 'payer_mobile', 'restrict_payer_mobile'),
    source,
    digest,
  }
}

/** Returns why a record ended without money. */
export function checkoutFailure(
  found: CheckoutRecord,
  kind: OperationKind,
  digest: string,
  now: Date,
): Refusal {
  const { record, status, expiresAt } = found
  const error = readCheckoutError(record.record('payout_error', 'last_payment_error'))
  // The last error explains the end of a cancelled session, but not the end of a session that expired.
  if (kind !== 'collect' || record.word('payment_status') === 'cancelled') {
    const refusal = error && checkoutRefusal(error, kind, digest)
    const reason = kind === 'collect' ? 'PAYER_DECLINED' : 'UNSPECIFIED'
    return refusal ?? { reason, code: error?.code ?? status, message: error?.message, digest }
  }
  const early = expiresAt !== undefined && now.getTime() < expiresAt.getTime() - clockSkewMs
  return { reason: early ? 'CANCELLED' : 'PAYER_TIMEOUT', code: status, digest }
}

/** Returns the outcome of a record, for a question about the operation. */
export function checkoutOutcome(
  found: CheckoutRecord,
  kind: OperationKind,
  digest: string,
  now: Date,
): QueryOutcome {
  const { stands, expiresAt } = found
  if (stands === 'failed') return { kind: 'refused', refusal: checkoutFailure(found, kind, digest, now) }
  if (stands === 'open' || stands === 'unclear') return { kind: 'pending', expiresAt }
  const evidence = checkoutEvidence(found, kind, 'query', digest, now)
  if (!evidence) return { kind: 'unreachable', cause: 'unreadable_amount' }
  return stands === 'paid'
    ? { kind: 'settled', evidence }
    : { kind: 'reversed', evidence, reversalRef: evidence.operatorRef }
}
