import { z } from 'zod'
import { mine } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import { oneOf, readInput } from '../../shared/input.ts'
import { batchStates } from './states.ts'

export const batchFilterInput = z.object({ status: oneOf(batchStates.statuses).nullish() })
type BatchFilter = z.input<typeof batchFilterInput>

/**
 * Returns the condition of a filter for Prisma. It selects only batches of the caller's merchant.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export function batchesWhere(ctx: Context, raw: BatchFilter | null | undefined) {
  const { status } = readInput(batchFilterInput, raw ?? {})
  return { ...mine(ctx), ...(status && { status }) }
}
