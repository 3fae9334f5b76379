import { z } from 'zod'
import { mine } from '../../identity/callers/actor.ts'
import type { Context } from '../../context.ts'
import { among, conditions, createdRange, someOf, within } from '../../shared/filter.ts'
import { oneOf, readInput, truth, withDefault } from '../../shared/input.ts'
import { payoutMethods } from '../../shared/providers.ts'
import { beneficiaryCategories } from './create.ts'

/** The filter of a list of beneficiaries (see docs/design/rules.md#beneficiaries). */
export const beneficiaryFilterInput = z.object({
  category: someOf(oneOf(beneficiaryCategories)).nullish(),
  paymentMethod: someOf(oneOf(payoutMethods)).nullish(),
  activeOnly: withDefault(truth, false),
  ...createdRange,
})
type BeneficiaryFilter = z.input<typeof beneficiaryFilterInput>

/**
 * Returns the condition of a filter for Prisma. It selects only rows of the caller's merchant.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export function beneficiariesWhere(ctx: Context, raw: BeneficiaryFilter | null | undefined) {
  const filter = readInput(beneficiaryFilterInput, raw ?? {})
  return conditions({
    ...mine(ctx),
    category: among(filter.category),
    paymentMethod: among(filter.paymentMethod),
    isActive: filter.activeOnly ? true : undefined,
    createdAt: within(filter.createdFrom, filter.createdTo),
  })
}
