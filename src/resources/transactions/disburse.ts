import { actorOf } from '../../identity/actor.ts'
import { checkKeyLimits } from '../../identity/key-limits.ts'
import { whyTurnedAway } from '../../identity/credentials.ts'
import type { Context } from '../../context.ts'
import { afterOthers } from '../../shared/single-flight.ts'
import { sqlFunctionOfMany, sqlType } from '../../database/sql-function.ts'
import { awaitEvent } from '../../events/await-event.ts'
import { isTransactionEvent, type LogEvent } from '../../events/catalogue.ts'
import { insufficientBalance } from '../../ledger/balance.ts'
import type { Operator } from '../../operators/registry.ts'
import { newRequest, type OpenRequest } from '../../requests/open-request.ts'
import { DomainError } from '../../shared/errors.ts'
import { limits } from '../../shared/limits.ts'
import { sendDeadline, type SendOutcome } from '../../requests/send.ts'
import { paymentOutTypes, recordsPaymentsOut } from '../record-payment.ts'
import {
  answered,
  connectedOperator,
  duplicateReference,
  type Existing,
  findExisting,
  type Initiation,
  isOwn,
  type InitiationItem,
  madeTypes,
  notSent,
  operatorUnavailable,
  sendOnce,
} from './initiation.ts'

/** A deposit, or a refund: a deposit that gives a collection back. */
export interface DisburseItem extends InitiationItem {
  refundOfId: bigint | null
}

/**
 * Pays a customer. Sets the money aside and records the intent to ask, commits, asks the operator, and then
 * waits for the outcome: on whatever node and in whatever way it becomes known, the log tells of it. After 20
 * s, or when the service ends, the answer is that it is under way; it then ends by itself.
 * Where the merchant's approvals cover deposits, one of the threshold and more waits for people instead, with
 * its money set aside; once they approved it, it is sent by the job that sends what was not sent.
 * @returns the initiation, `success`, `processing` or `pending_approval`
 * @throws DomainError LIMIT_EXCEEDED, DUPLICATE_REFERENCE, OPERATOR_UNAVAILABLE, PAYMENTS_OUT_HALTED,
 *   INSUFFICIENT_BALANCE, NOT_REFUNDABLE, REFUND_TOO_LARGE (nothing recorded), PAYMENT_REFUSED (recorded as
 *   failed, the money free again; `detail.initiation`), OVERLOADED
 */
export function disburse(ctx: Context, item: DisburseItem): Promise<Initiation> {
  checkKeyLimits(actorOf(ctx), item)
  return whileAnybodyWaits(ctx, async (until) => {
    const operator = connectedOperator(ctx, item.provider)
    // From before the fence stands, so that nothing leaves behind it.
    const deadline = sendDeadline(operator, 'disburse')
    const made = await record(ctx, operator, item)
    if ('phone' in made) return answered(await outcomeOf(ctx, made, until))
    ctx.sequencer.notify()
    if (made.outcome === 'waits') return initiationOf(item, made, 'pending_approval')

    const sending = made.isOrphan
      ? notSent('processing')
      : sendOnce(ctx, openRequest(item, made), deadline, 'processing')
    const sent = await Promise.race([sending, ended(until)])
    const status = (sent?.status ?? 'processing') as Initiation['status']
    const initiation = initiationOf(item, made, status, sent?.refusal ?? null)
    return answered(await outcomeOf(ctx, initiation, until))
  })
}

function initiationOf(
  item: DisburseItem,
  made: Pick<Extract<Made, { outcome: 'waits' }>, 'transactionId' | 'createdAt'>,
  status: Initiation['status'],
  refusal: SendOutcome['refusal'] = null,
): Initiation {
  return {
    transactionId: made.transactionId,
    reference: item.reference,
    amount: item.amount,
    paymentMethod: item.provider,
    status,
    paymentUrl: null,
    failureReason: refusal?.reason ?? null,
    failureMessage: refusal?.message ?? null,
    initiatedAt: made.createdAt,
  }
}

/**
 * A deposit that was begun already, for whoever goes on with the request that began it.
 * @throws DomainError PAYMENT_REFUSED
 */
export function resumeDeposit(ctx: Context, existing: Existing): Promise<Initiation> {
  return whileAnybodyWaits(ctx, async (until) => answered(await outcomeOf(ctx, existing, until)))
}

/** @returns what was made; what the same request had made before, where it goes on with that */
async function record(
  ctx: Context,
  operator: Operator,
  item: DisburseItem,
): Promise<Extract<Made, { outcome: 'made' | 'waits' }> | Existing> {
  const start = operator.canStart('disburse')
  if (!start.ok) {
    // Whoever repeats a request that was taken must not hear that nothing was recorded.
    const existing = await findExisting(ctx, item)
    if (existing) return repeated(ctx, item, existing)
    throw operatorUnavailable(start.retryAfterMs)
  }
  for (let tries = 0; tries < limits.batchSizeMax; tries += 1) {
    const run = () => recordDeposit(ctx, item)
    // Of several refunds of one collection in a statement only the first is judged: they go one by one.
    const made = await (item.refundOfId === null ? run() : afterOthers(ctx, `refund:${item.refundOfId}`, run))
    switch (made.outcome) {
      case 'made':
      case 'waits':
        return made
      // The loser of a race for a reference reads in a second statement: by then the winner has committed.
      case 'duplicate':
        return repeated(ctx, item, await findExisting(ctx, item))
      case 'unauthenticated':
        throw await whyTurnedAway(ctx)
      case 'short':
        throw await insufficientBalance(ctx.database.merchantPool, item.merchantId)
      case 'halted':
        throw new DomainError('PAYMENTS_OUT_HALTED')
      case 'not_refundable':
        throw new DomainError('NOT_REFUNDABLE')
      case 'too_large':
        throw new DomainError('REFUND_TOO_LARGE')
      case 'again':
        break
    }
  }
  throw new DomainError('OVERLOADED', undefined, { retryAfterS: limits.overloadRetryS })
}

/** @throws DomainError DUPLICATE_REFERENCE */
function repeated(ctx: Context, item: DisburseItem, existing: Existing | undefined): Existing {
  const { amount, provider: paymentMethod, phone, refundOfId } = item
  if (isOwn(ctx, existing, { type: 'deposit', amount, paymentMethod, phone, refundOfId })) return existing
  throw duplicateReference(existing)
}

/**
 * How a deposit ended; how it stands where that is not known in time. What goes wrong here changes nothing of
 * it: it is on record and under way.
 */
async function outcomeOf(ctx: Context, known: Initiation, until: AbortSignal): Promise<Initiation> {
  // A deposit is pending only while it waits for people.
  if (known.status === 'pending') return { ...known, status: 'pending_approval' }
  if (known.status !== 'processing') return known
  const { transactionId, reference } = known
  const { merchantId } = actorOf(ctx)
  // That it is under way may be told only after the look at the log.
  const isOutcome = (event: LogEvent) =>
    isTransactionEvent(event) &&
    event.type !== 'deposit_processing' &&
    BigInt(event.data.transaction_id) === transactionId
  try {
    const { after } = await ctx.feed.start(merchantId, null)
    const standing = await findExisting(ctx, { reference, merchantId })
    if (standing?.status !== 'processing') return standing ?? known
    const event = await awaitEvent(ctx.feed, merchantId, after, isOutcome, until)
    return (event && (await findExisting(ctx, { reference, merchantId }))) ?? known
  } catch (error) {
    ctx.log.error({ err: error, transactionId }, 'the outcome of a deposit was not awaited')
    return known
  }
}

/** Runs work with a signal that aborts once a caller has waited long enough, or the service ends. */
async function whileAnybodyWaits<T>(ctx: Context, work: (until: AbortSignal) => Promise<T>): Promise<T> {
  const over = new AbortController()
  const end = () => over.abort()
  const timer = setTimeout(end, limits.depositWaitMs)
  ctx.ending.addEventListener('abort', end, { once: true })
  if (ctx.ending.aborted) end()
  try {
    return await work(over.signal)
  } finally {
    clearTimeout(timer)
    ctx.ending.removeEventListener('abort', end)
  }
}

function ended(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null)
    signal.addEventListener('abort', () => resolve(null), { once: true })
  })
}

type Made =
  | {
      outcome: 'made'
      transactionId: bigint
      requestId: bigint
      correlationId: string
      createdAt: Date
      /** The operator executed it before a restore: it is only asked about. */
      isOrphan: boolean
    }
  | { outcome: 'waits'; transactionId: bigint; createdAt: Date }
  | {
      outcome: 'unauthenticated' | 'duplicate' | 'not_refundable' | 'too_large' | 'halted' | 'short' | 'again'
    }

/** One statement for all that arrived together: who is covered, and what each of them sets aside. */
export const depositMany = sqlFunctionOfMany('deposit_many', {
  each: { ...paymentOutTypes, refundOfId: 'bigint?' },
  takes: { fenceMs: 'bigint', firstCheckMs: 'bigint', approvalMs: 'bigint', waits: 'boolean' },
  gives: { outcome: sqlType<Made['outcome']>('text'), ...madeTypes },
})

const recordDeposit = recordsPaymentsOut<DisburseItem, Made>(async (pool, items, waits) => {
  const rows = await depositMany(pool, items, {
    fenceMs: limits.operatorFenceMs,
    firstCheckMs: limits.firstCheckMs,
    approvalMs: limits.approvalLifetimeMs,
    waits,
  })
  return rows as Made[]
})

function openRequest(item: DisburseItem, made: Extract<Made, { outcome: 'made' }>): OpenRequest {
  const { merchantId, provider, amount, phone, request } = item
  const { requestId: id, transactionId: subjectId, correlationId } = made
  const asked = { merchantId, provider, amount, phone, request, correlationId }
  return newRequest({ ...asked, id, subject: 'deposit', subjectId, status: 'processing', leftMs: null })
}
