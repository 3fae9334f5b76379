import { actorOf } from '../../identity/callers/actor.ts'
import { checkKeyLimits } from '../../identity/keys/key-limits.ts'
import { whyTurnedAway } from '../../identity/callers/credentials.ts'
import type { Context } from '../../context.ts'
import { afterOthers } from '../../shared/single-flight.ts'
import { sqlFunctionOfMany, sqlType } from '../../database/sql-function.ts'
import { awaitEvent } from '../../events/await-event.ts'
import { changesOf } from '../../events/filter.ts'
import { insufficientBalance } from '../../ledger/balance.ts'
import type { Operator } from '../../operators/registry.ts'
import { newRequest, type OpenRequest } from '../../requests/open-request.ts'
import { DomainError } from '../../shared/errors.ts'
import { limits } from '../../shared/limits.ts'
import { otherLostPayment } from '../../requests/lost-payment.ts'
import { sendDeadline, type SendOutcome } from '../../requests/send.ts'
import { paymentOutTypes, recordsPaymentsOut } from '../disbursements/record.ts'
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

/** The input of a deposit or of a refund, which is a deposit that gives a collection back. */
export interface DisburseItem extends InitiationItem {
  refundOfId: bigint | null
}

/**
 * Pays a customer. Reserves the money and records the intent to ask, commits, asks the operator, and then
 * waits for the outcome. It waits by reading the event log, so it does not matter which node learns the
 * outcome. After 20 s, or when the service ends, the answer is `processing`, and the deposit is settled
 * later. If the merchant's approvals cover deposits, a deposit of at least the threshold waits for approval
 * instead, with its money reserved. After the approval, the job that sends unsent requests sends it.
 * @returns the initiation, `success`, `processing` or `pending_approval`
 * @throws DomainError LIMIT_EXCEEDED, DUPLICATE_REFERENCE, OPERATOR_UNAVAILABLE, PAYMENTS_OUT_HALTED,
 *   INSUFFICIENT_BALANCE, NOT_REFUNDABLE, REFUND_TOO_LARGE (nothing recorded), PAYMENT_REFUSED (recorded as
 *   failed, the money available again; `detail.initiation`), OVERLOADED
 */
export function disburse(ctx: Context, item: DisburseItem): Promise<Initiation> {
  checkKeyLimits(actorOf(ctx), item)
  return whileCallerWaits(ctx, async (until) => {
    const operator = connectedOperator(ctx, item.provider)
    // Compute the deadline before the database sets the fence, so that nothing is sent after the fence has
    // ended.
    const deadline = sendDeadline(operator, 'disburse')
    const made = await record(ctx, operator, item)
    if ('phone' in made) return answered(await outcomeOf(ctx, made, until))
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
 * Answers a repeated request with the outcome of the deposit that its earlier try recorded.
 * @throws DomainError PAYMENT_REFUSED
 */
export function resumeDeposit(ctx: Context, existing: Existing): Promise<Initiation> {
  return whileCallerWaits(ctx, async (until) => answered(await outcomeOf(ctx, existing, until)))
}

/**
 * Records a deposit.
 * @returns the new deposit, or the one that an earlier try of this same request recorded
 */
async function record(
  ctx: Context,
  operator: Operator,
  item: DisburseItem,
): Promise<Extract<Made, { outcome: 'made' | 'waits' }> | Existing> {
  const start = operator.canStart('disburse')
  if (!start.ok) {
    // OPERATOR_UNAVAILABLE means that nothing was recorded, but an earlier try of this request may have
    // recorded the deposit.
    const existing = await findExisting(ctx, item)
    if (existing) return repeated(ctx, item, existing)
    throw operatorUnavailable(start.retryAfterMs)
  }
  for (let tries = 0; tries < limits.statementItemsMax; tries += 1) {
    const run = () => recordDeposit(ctx, item)
    // One statement makes at most one refund of a collection, so refunds of one collection are recorded one
    // by one.
    const made = await (item.refundOfId === null ? run() : afterOthers(ctx, `refund:${item.refundOfId}`, run))
    switch (made.outcome) {
      case 'made':
      case 'waits':
        return made
      // The payment that took the reference first is committed by now, so a second statement can read it.
      case 'duplicate':
        return repeated(ctx, item, await findExisting(ctx, item))
      case 'differs':
        throw await otherLostPayment(ctx, 'DUPLICATE_REFERENCE', item.identity)
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

/**
 * Returns the existing deposit if this same request recorded it. @throws DomainError DUPLICATE_REFERENCE if
 * not
 */
function repeated(ctx: Context, item: DisburseItem, existing: Existing | undefined): Existing {
  const { amount, provider: paymentMethod, phone, refundOfId } = item
  if (isOwn(ctx, existing, { type: 'deposit', amount, paymentMethod, phone, refundOfId })) return existing
  throw duplicateReference(existing)
}

/**
 * Waits for the outcome of a deposit, and returns its present state if the wait ends first. After an error,
 * which is only logged, it returns the state that the caller knew: the deposit is recorded and goes on.
 */
async function outcomeOf(ctx: Context, known: Initiation, until: AbortSignal): Promise<Initiation> {
  // A deposit is `pending` only while it waits for approval.
  if (known.status === 'pending') return { ...known, status: 'pending_approval' }
  if (known.status !== 'processing') return known
  const { transactionId, reference } = known
  const { merchantId } = actorOf(ctx)
  const changes = changesOf('transaction', transactionId)
  // `deposit_processing` is no outcome, and may come after the position in the log was read.
  const types = new Set([...changes.types].filter((type) => type !== 'deposit_processing'))
  try {
    const { after } = await ctx.feed.start(merchantId, null)
    const current = await findExisting(ctx, { reference, merchantId })
    if (current?.status !== 'processing') return current ?? known
    const event = await awaitEvent(ctx.feed, merchantId, after, { ...changes, types }, until)
    return (event && (await findExisting(ctx, { reference, merchantId }))) ?? known
  } catch (error) {
    ctx.log.error({ err: error, transactionId }, 'waiting for the outcome of a deposit failed')
    return known
  }
}

/** Runs work with a signal that aborts after 20 s, the longest wait of a caller, or when the service ends. */
async function whileCallerWaits<T>(ctx: Context, work: (until: AbortSignal) => Promise<T>): Promise<T> {
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
      /**
       * True if the operator executed the deposit before a restore: then the operator is only asked about it.
       */
      isOrphan: boolean
    }
  | { outcome: 'waits'; transactionId: bigint; createdAt: Date }
  | {
      outcome:
        | 'unauthenticated'
        | 'duplicate'
        | 'differs'
        | 'not_refundable'
        | 'too_large'
        | 'halted'
        | 'short'
        | 'again'
    }

/** Records all deposits that arrived together in one statement, which decides which of them are covered. */
export const depositMany = sqlFunctionOfMany('deposit_many', {
  as: 'deposit_item',
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
