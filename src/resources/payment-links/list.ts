import { z } from 'zod'
import { mine } from '../../identity/callers/actor.ts'
import type { Context } from '../../context.ts'
import type { ListedTable } from '../../database/find-rows.ts'
import { amountRange, conditions, createdRange, searchText, within } from '../../shared/filter.ts'
import { readInput, truth, withDefault } from '../../shared/input.ts'

/** The filter of a list of links (see docs/design/rules.md#payment-links). */
export const linkFilterInput = z.object({
  activeOnly: withDefault(truth, true),
  search: searchText.nullish(),
  ...createdRange,
  ...amountRange,
})
type LinkFilter = z.input<typeof linkFilterInput>

/** The table that a search reads. */
export const linkTable: ListedTable = { name: 'payment_link', amount: 'amount' }

/**
 * Returns the condition of a filter for Prisma: links of the caller's merchant, and inactive ones only where
 * `activeOnly` is false. Prisma cannot express the search of a filter: see `database/find-rows.ts`.
 * @throws DomainError INVALID_INPUT
 */
export function linksWhere(ctx: Context, raw: LinkFilter | null | undefined) {
  const filter = readInput(linkFilterInput, raw ?? {})
  return conditions({
    ...mine(ctx),
    isActive: filter.activeOnly ? true : undefined,
    createdAt: within(filter.createdFrom, filter.createdTo),
    amount: within(filter.amountMin, filter.amountMax),
  })
}
