import { z } from 'zod'
import { mine } from '../../identity/callers/actor.ts'
import type { Context } from '../../context.ts'
import { amountRange, conditions, createdRange, within } from '../../shared/filter.ts'
import { readInput, truth } from '../../shared/input.ts'

/** The filter of a list of links (see docs/design/rules.md#payment-links). */
export const linkFilterInput = z.object({ activeOnly: truth.nullish(), ...createdRange, ...amountRange })

/**
 * Returns the condition of a filter for Prisma: links of the caller's merchant, and inactive ones only where
 * `activeOnly` is false.
 * @throws DomainError INVALID_INPUT
 */
export function linksWhere(ctx: Context, raw: z.input<typeof linkFilterInput> | null | undefined) {
  const filter = readInput(linkFilterInput, raw ?? {})
  return conditions({
    ...mine(ctx),
    isActive: filter.activeOnly === false ? undefined : true,
    createdAt: within(filter.createdFrom, filter.createdTo),
    amount: within(filter.amountMin, filter.amountMax),
  })
}
