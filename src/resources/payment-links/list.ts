import { z } from 'zod'
import { mine } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import { readInput, truth } from '../../shared/input.ts'

/** Which links a list shows (specification: GET /payment-links; decisions: Endpoints). */
export const linkFilterInput = z.object({ activeOnly: truth.nullish() })

/** Of the caller's merchant; inactive ones where they are asked for. @throws DomainError INVALID_INPUT */
export function linksWhere(ctx: Context, raw: z.input<typeof linkFilterInput> | null | undefined) {
  const { activeOnly } = readInput(linkFilterInput, raw ?? {})
  return { ...mine(ctx), ...(activeOnly !== false && { isActive: true }) }
}
