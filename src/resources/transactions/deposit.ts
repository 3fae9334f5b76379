import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { recordingOf } from '../../audit/audit-log.ts'
import { callerOf } from '../../identity/callers/actor.ts'
import type { Context } from '../../context.ts'
import { amount, lines, phone, provider, readInput, reference, xofByDefault } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import { currency } from '../../shared/money.ts'
import { identityOf } from '../../requests/identity.ts'
import { disburse } from './disburse.ts'
import { type Initiation, requestData } from './initiation.ts'

/** The input of a deposit (see docs/design/rules.md#deposits-and-refunds). */
export const depositInput = z.object({
  amount: amount({ min: limits.disburseAmountMinXof, max: limits.amountMaxXof }),
  customerPhone: phone,
  paymentMethod: provider,
  currency: xofByDefault,
  reference: reference.nullish(),
  description: lines({ max: limits.descriptionLengthMax }).nullish(),
})
export type DepositInput = z.input<typeof depositInput>

/**
 * Sends money to a customer's mobile-money number, out of the merchant's balance.
 * @param raw.amount whole XOF, 1,000 to 1,000,000
 * @returns the initiation: `success`, `processing` where the outcome is not known within 20 s (or when the
 *   service ends), or `pending_approval` where it waits for an approval
 * @throws DomainError INVALID_INPUT, and the errors of `disburse`
 * @see docs/design/rules.md#deposits-and-refunds
 */
export async function deposit(ctx: Context, raw: DepositInput): Promise<Initiation> {
  const caller = callerOf(ctx)
  const input = readInput(depositInput, raw)
  return disburse(ctx, {
    ...caller,
    recording: recordingOf(ctx, 'deposit'),
    provider: input.paymentMethod,
    phone: input.customerPhone,
    amount: input.amount,
    reference: input.reference ?? `dp_${ctx.idempotentOperation?.id ?? randomBytes(16).toString('hex')}`,
    identity: await identityOf(ctx, 'disburse', input.reference),
    refundOfId: null,
    request: requestData({
      amount: Number(input.amount),
      currency,
      customer_phone: input.customerPhone,
      payment_method: input.paymentMethod,
      reference: input.reference,
      description: input.description,
    }),
  })
}
