import { mine } from '../../identity/callers/actor.ts'
import type { Context } from '../../context.ts'
import { DomainError } from '../../shared/errors.ts'

/** Makes the condition for the endpoints of the caller's merchant, without the removed ones. */
export function webhooksWhere(ctx: Context): { merchantId: number; removedAt: null } {
  return { ...mine(ctx), removedAt: null }
}

/**
 * Finds an endpoint of the caller's merchant under row-level security. Call this before a function that
 * writes to the endpoint: such functions bypass row-level security.
 * @throws DomainError NOT_FOUND
 */
export async function findWebhook(ctx: Context, id: number): Promise<{ id: number; merchantId: number }> {
  const where = { ...webhooksWhere(ctx), id }
  const select = { id: true, merchantId: true }
  const found = await ctx.database.prisma.webhookEndpoint.findFirst({ where, select })
  if (!found) throw noSuchWebhook()
  return found
}

export function noSuchWebhook(): DomainError {
  return new DomainError('NOT_FOUND', 'There is no such webhook endpoint.')
}
