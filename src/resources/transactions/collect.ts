import { randomBytes } from 'node:crypto'
import type { Pool } from 'pg'
import { z } from 'zod'
import { recordingOf } from '../../audit/audit-log.ts'
import { actorOf, callerOf } from '../../identity/callers/actor.ts'
import { whyTurnedAway } from '../../identity/callers/credentials.ts'
import { checkKeyLimits } from '../../identity/keys/key-limits.ts'
import type { Context } from '../../context.ts'
import { shareStatement } from '../../database/shared-statements.ts'
import { sqlFunctionOfMany, sqlType } from '../../database/sql-function.ts'
import {
  amount,
  email,
  lines,
  phone,
  provider,
  readInput,
  reference,
  xofByDefault,
} from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import { currency } from '../../shared/money.ts'
import { webAddress } from '../../shared/web-address.ts'
import { deadlineIn } from '../../operators/call-limits.ts'
import { identityOf } from '../../requests/identity.ts'
import { otherLostPayment } from '../../requests/lost-payment.ts'
import { paymentTypes } from '../disbursements/record.ts'
import {
  answered,
  askPayer,
  connectedOperator,
  duplicateReference,
  type Existing,
  findExisting,
  type Initiation,
  isOwn,
  type InitiationItem,
  madeTypes,
  type MadeCollection,
  operatorUnavailable,
  requestData,
} from './initiation.ts'

/** The input of a collection (see docs/design/rules.md#collections). */
export const collectInput = z.object({
  amount: amount({ min: limits.collectAmountMinXof, max: limits.amountMaxXof }),
  customerPhone: phone,
  paymentMethod: provider,
  currency: xofByDefault,
  customerEmail: email.nullish(),
  reference: reference.nullish(),
  description: lines({ max: limits.descriptionLengthMax }).nullish(),
  returnUrl: webAddress.nullish(),
  cancelUrl: webAddress.nullish(),
})
export type CollectInput = z.input<typeof collectInput>

/**
 * Asks a customer for money. Records the payment and the intent to ask, commits, and only then asks the
 * operator: by a prompt on the customer's phone, or a hosted page.
 * @param raw.amount whole XOF, 100 to 1,000,000
 * @returns the initiation, `pending`, or already `success` where the operator settles at once
 * @throws DomainError INVALID_INPUT, LIMIT_EXCEEDED, DUPLICATE_REFERENCE (with the existing transaction),
 *   OPERATOR_UNAVAILABLE (nothing recorded), PAYMENT_REFUSED (recorded as failed; `detail.initiation`),
 *   OVERLOADED
 * @see docs/design/rules.md#collections
 */
export async function collect(ctx: Context, raw: CollectInput): Promise<Initiation> {
  const caller = callerOf(ctx)
  const input = readInput(collectInput, raw)
  checkKeyLimits(actorOf(ctx), { amount: null, provider: input.paymentMethod })
  const operator = connectedOperator(ctx, input.paymentMethod)
  const item: InitiationItem = {
    ...caller,
    recording: recordingOf(ctx, 'collectPayment'),
    provider: input.paymentMethod,
    phone: input.customerPhone,
    amount: input.amount,
    reference: input.reference ?? `mp_${ctx.idempotentOperation?.id ?? randomBytes(16).toString('hex')}`,
    identity: await identityOf(ctx, 'collect', input.reference),
    request: requestData({
      amount: Number(input.amount),
      currency,
      customer_phone: input.customerPhone,
      payment_method: input.paymentMethod,
      reference: input.reference,
      customer_email: input.customerEmail,
      description: input.description,
      return_url: input.returnUrl,
      cancel_url: input.cancelUrl,
    }),
  }
  const start = operator.canStart('collect')
  if (!start.ok) {
    // OPERATOR_UNAVAILABLE means that nothing was recorded, but an earlier try of this request may have
    // recorded the payment.
    const existing =
      (input.reference || ctx.idempotentOperation?.isResumed) && (await findExisting(ctx, item))
    if (existing) return repeated(ctx, item, existing)
    throw operatorUnavailable(start.retryAfterMs)
  }

  const deadline = deadlineIn(limits.collectDeadlineMs)
  const made = await ctx.sharedStatements.run(collecting, item)
  // The payment that took the reference first is committed by now, so a second statement can read it.
  if (made.outcome === 'duplicate') return repeated(ctx, item, await findExisting(ctx, item))
  if (made.outcome === 'differs') throw await otherLostPayment(ctx, 'DUPLICATE_REFERENCE', item.identity)
  if (made.outcome === 'unauthenticated') throw await whyTurnedAway(ctx)

  return askPayer(ctx, item, made, deadline)
}

/**
 * Answers a request whose reference is already taken.
 * @returns the present state of the collection, if an earlier try of this same request recorded it
 * @throws DomainError DUPLICATE_REFERENCE otherwise; PAYMENT_REFUSED if that collection failed
 */
function repeated(ctx: Context, item: InitiationItem, existing: Existing | undefined): Initiation {
  const { amount: asked, provider: paymentMethod, phone: payer } = item
  if (isOwn(ctx, existing, { type: 'pay', amount: asked, paymentMethod, phone: payer }))
    return answered(existing)
  throw duplicateReference(existing)
}

type Made =
  | ({ outcome: 'made' } & MadeCollection)
  | { outcome: 'duplicate' }
  | { outcome: 'differs' }
  | { outcome: 'unauthenticated' }

/**
 * Records all collections that arrived together, in one call; a taken reference gives the outcome
 * `duplicate`, and an orphan with other facts under the same identity the outcome `differs`.
 */
export const collectMany = sqlFunctionOfMany('collect_many', {
  as: 'collection_item',
  each: paymentTypes,
  takes: { lifetimeMs: 'bigint', fenceMs: 'bigint', firstCheckMs: 'bigint', waits: 'boolean' },
  gives: { outcome: sqlType<Made['outcome']>('text'), ...madeTypes },
})

const collecting = shareStatement(
  async (pool: Pool, items: readonly InitiationItem[], waits: boolean): Promise<Made[]> => {
    const rows = await collectMany(pool, items, {
      lifetimeMs: limits.collectionLifetimeMs,
      fenceMs: limits.operatorFenceMs,
      firstCheckMs: limits.firstCheckMs,
      waits,
    })
    return rows as Made[]
  },
  ({ merchantId }: InitiationItem) => merchantId,
)
