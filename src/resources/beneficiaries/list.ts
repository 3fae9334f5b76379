import { z } from 'zod'
import { mine } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import { oneOf, readInput, truth } from '../../shared/input.ts'
import { payoutMethods } from '../../shared/providers.ts'
import { beneficiaryCategories } from './create.ts'

/** The filter of a list of beneficiaries (see docs/design/rules.md#beneficiaries). */
export const beneficiaryFilterInput = z.object({
  category: oneOf(beneficiaryCategories).nullish(),
  paymentMethod: oneOf(payoutMethods).nullish(),
  activeOnly: truth.nullish(),
})
type BeneficiaryFilter = z.input<typeof beneficiaryFilterInput>

/**
 * Returns the condition of a filter for Prisma. It selects only rows of the caller's merchant.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export function beneficiariesWhere(ctx: Context, raw: BeneficiaryFilter | null | undefined) {
  const { category, paymentMethod, activeOnly } = readInput(beneficiaryFilterInput, raw ?? {})
  return {
    ...mine(ctx),
    ...(category && { category }),
    ...(paymentMethod && { paymentMethod }),
    ...(activeOnly && { isActive: true }),
  }
}
