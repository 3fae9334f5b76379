import { z } from 'zod'
import { mine } from '../../access/actor.ts'
import type { Context } from '../../context.ts'
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
  const { beneficiary } = ctx.database.prisma
  const row = {
    ...mine(ctx),
    ...input,
    ...(category && { category }),
    madeFor,
    createdAt: now,
    updatedAt: now,
  }
  const [made] = await beneficiary.createManyAndReturn({ data: [row], skipDuplicates: true })
  if (made) return made
  // The same request made it when it was first begun.
  const known = await beneficiary.findFirst({ where: { ...mine(ctx), madeFor } })
  invariant(known, 'what one effect made is there')
  return known
}
