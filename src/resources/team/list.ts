import { mine } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'

/** Who is in the team or invited to it: of the caller's merchant only, and nobody who was removed. */
export function listedMembers(ctx: Context) {
  return { ...mine(ctx), status: { not: 'removed' as const } }
}
