import { z } from 'zod'
import { mine } from '../../identity/actor.ts'
import { recordingOf, recordMade } from '../../audit/audit-log.ts'
import type { Context } from '../../context.ts'
import { transact } from '../../database/transact.ts'
import { oneOf, readInput, text } from '../../shared/input.ts'
import { invariant } from '../../shared/invariant.ts'
import { limits } from '../../shared/limits.ts'
import { asStored, fits, placeFields } from './account.ts'

/** What a beneficiary is to the merchant (specification: Beneficiary). */
export const beneficiaryCategories = ['supplier', 'employee', 'partner', 'customer'] as const

export const beneficiaryFields = {
  ...placeFields,
  name: text({ min: 1, max: limits.beneficiaryNameLengthMax }),
  category: oneOf(beneficiaryCategories).nullish(),
}
export const createBeneficiaryInput = z
  .object(beneficiaryFields)
  .refine(...fits)
  .transform(asStored)
type CreateBeneficiaryInput = z.input<typeof createBeneficiaryInput>

/**
 * Saves somebody whom the merchant pays. Two with one account are two.
 * @param raw.account a mobile number of Mali, kept as E.164; of a bank 5 to 34 characters, kept as they are
 * @param raw.category customer where left out
 * @throws DomainError INVALID_INPUT
 * @see specification: Beneficiaries
 */
export async function createBeneficiary(ctx: Context, raw: CreateBeneficiaryInput): Promise<{ id: number }> {
  const { category, ...input } = readInput(createBeneficiaryInput, raw)
  const now = ctx.clock.now()
  const madeFor = ctx.effect?.id ?? null
  const { name, account, paymentMethod } = input
  const { merchantId } = mine(ctx)
  const made = await transact({ pool: ctx.database.merchantPool }, async (tx) => {
    const { rows } = await tx.query<{ id: number }>(
      `INSERT INTO beneficiary (merchant_id, name, account, payment_method, category, made_for, created_at,
         updated_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $7) ON CONFLICT DO NOTHING RETURNING id`,
      [merchantId, name, account, paymentMethod, category ?? 'customer', madeFor, now],
    )
    if (rows[0]) await recordMade(tx, recordingOf(ctx, 'createBeneficiary'), ['beneficiary', rows[0].id])
    return rows[0]
  })
  if (made) return made
  // The same request made it when it was first begun.
  const known = await ctx.database.prisma.beneficiary.findFirst({ where: { ...mine(ctx), madeFor } })
  invariant(known, 'what one effect made is there')
  return known
}
