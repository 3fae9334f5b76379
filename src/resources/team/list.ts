import { mine } from '../../identity/callers/actor.ts'
import type { Context } from '../../context.ts'

/** Makes the condition for the active and invited members of the caller's team. */
export function listedMembers(ctx: Context) {
  return { ...mine(ctx), status: { not: 'removed' as const } }
}
