import { z } from 'zod'
import { mine } from '../../identity/callers/actor.ts'
import type { Context } from '../../context.ts'
import {
  amountRange,
  among,
  authorFilter,
  conditions,
  createdRange,
  someOf,
  within,
} from '../../shared/filter.ts'
import { oneOf, readInput } from '../../shared/input.ts'
import { batchStates } from './states.ts'

export const batchFilterInput = z.object({
  status: someOf(oneOf(batchStates.statuses)).nullish(),
  createdBy: authorFilter.nullish(),
  ...createdRange,
  ...amountRange,
})
type BatchFilter = z.input<typeof batchFilterInput>

/**
 * Returns the condition of a filter for Prisma. It selects only batches of the caller's merchant.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export function batchesWhere(ctx: Context, raw: BatchFilter | null | undefined) {
  const filter = readInput(batchFilterInput, raw ?? {})
  return conditions({
    ...mine(ctx),
    status: among(filter.status),
    maker: filter.createdBy ?? undefined,
    createdAt: within(filter.createdFrom, filter.createdTo),
    totalAmount: within(filter.amountMin, filter.amountMax),
  })
}
