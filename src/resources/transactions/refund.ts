import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { asPlatform } from '../../database/as-platform.ts'
import { callerOf, mine } from '../../identity/callers/actor.ts'
import { recordingOf } from '../../audit/audit-log.ts'
import type { Context } from '../../context.ts'
import { DomainError } from '../../shared/errors.ts'
import { amount, invalidInput, lines, readInput, reference } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import { currency, type Xof } from '../../shared/money.ts'
import { parsePhone } from '../../shared/phone.ts'
import type { Provider } from '../../shared/providers.ts'
import { identityOf } from '../../requests/identity.ts'
import { disburse, resumeDeposit } from './disburse.ts'
import { findExisting, type Initiation, isOwn, requestData } from './initiation.ts'

export const refundInput = z.object({
  id: z.bigint(),
  amount: amount({ min: 1, max: limits.amountMaxXof }).nullish(),
  reason: lines({ max: limits.descriptionLengthMax }).nullish(),
  reference: reference.nullish(),
})
export type RefundInput = z.input<typeof refundInput>

/**
 * Gives a collection back to its payer, all of it or a part: a deposit by the same operator, linked to the
 * collection. Refunds that are paid or under way never exceed the paid amount. When the paid refunds reach
 * the paid amount, the collection becomes `reversed`.
 * @param raw.id the collection
 * @param raw.amount whole XOF, at least 1,000 or all that is left; default: all that is left
 * @returns the initiation of the deposit: `success`, `processing` or `pending_approval`
 * @throws DomainError INVALID_INPUT, NOT_FOUND, NOT_REFUNDABLE, REFUND_TOO_LARGE, and the errors of
 *   `disburse`
 */
export async function refundTransaction(ctx: Context, raw: RefundInput): Promise<Initiation> {
  const caller = callerOf(ctx)
  const input = readInput(refundInput, raw)
  const refundOfId = input.id
  const named = input.reference ?? `rf_${ctx.idempotentOperation?.id ?? randomBytes(16).toString('hex')}`
  if (ctx.idempotentOperation?.isResumed) {
    // First look, by reference, for a refund that an earlier try of this request began: that refund has
    // changed the collection, so the checks could refuse the repetition.
    const begun = await findExisting(ctx, { reference: named, merchantId: caller.merchantId })
    const asked = input.amount == null ? {} : { amount: input.amount }
    if (isOwn(ctx, begun, { type: 'deposit', refundOfId, ...asked })) return resumeDeposit(ctx, begun)
  }
  const original = await findOriginal(ctx, refundOfId)
  const sum = input.amount ?? original.left
  assertRefundable(sum, original.left)
  return disburse(ctx, {
    ...caller,
    recording: recordingOf(ctx, 'refundTransaction'),
    provider: original.provider,
    phone: original.payer,
    amount: sum,
    reference: named,
    identity: await identityOf(ctx, 'disburse', input.reference),
    refundOfId,
    request: requestData({
      amount: Number(sum),
      currency,
      customer_phone: original.payer,
      payment_method: original.provider,
      reference: input.reference,
      reason: input.reason,
      refund_of: Number(refundOfId),
    }),
  })
}

/**
 * Checks the amount of a refund; the statement that records it checks again, under a lock.
 * @throws DomainError REFUND_TOO_LARGE, INVALID_INPUT
 */
function assertRefundable(sum: Xof, left: Xof): void {
  if (sum > left || sum === 0n) throw new DomainError('REFUND_TOO_LARGE')
  if (sum >= limits.disburseAmountMinXof || sum === left) return
  const message = `must be at least ${limits.disburseAmountMinXof} XOF, or all that is left (${left} XOF)`
  throw invalidInput([{ field: 'amount', message }])
}

interface Original {
  provider: Provider
  /** E.164 number of the payer, if the operator reported it; otherwise the number that was asked to pay. */
  payer: string
  /** The paid amount, less what refunds have paid or may still pay. */
  left: Xof
}

/** Reads the collection to refund. @throws DomainError NOT_FOUND, NOT_REFUNDABLE */
async function findOriginal(ctx: Context, id: bigint): Promise<Original> {
  const { merchantId } = mine(ctx)
  const { rows } = await ctx.database.merchantPool.query<
    Omit<Original, 'payer'> & { phone: string; isPaid: boolean }
  >({
    name: 'refundable_transaction',
    text: `SELECT payment_method AS provider, customer_phone AS phone,
        transaction_type = 'pay' AND status = 'success' AS "isPaid",
        coalesce(settled_amount, 0) - (SELECT r.paid + r.open FROM refunds_of(t.id) AS r) AS left
      FROM transaction t WHERE t.id = $1 AND t.merchant_id = $2`,
    values: [id, merchantId],
  })
  const [row] = rows
  if (!row) throw new DomainError('NOT_FOUND')
  if (!row.isPaid) throw new DomainError('NOT_REFUNDABLE')
  // The operator's report about the payer is stored with its request, which merchants cannot read.
  const paid = await asPlatform(
    ctx,
    "no merchant may read the operator's report about the payer; the payment was found as the merchant's",
  ).pool.query<{ counterparty: string | null }>({
    name: 'payer_of',
    text: `SELECT evidence->>'counterparty' AS counterparty FROM operator_request
      WHERE transaction_id = $1 AND kind = 'collect'`,
    values: [id],
  })
  const payer = parsePhone(paid.rows[0]?.counterparty ?? '') ?? row.phone
  return { provider: row.provider, payer, left: row.left }
}
