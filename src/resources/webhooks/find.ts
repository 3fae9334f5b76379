import { mine } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import { DomainError } from '../../shared/errors.ts'

/** The endpoints that a merchant has: those that were removed are kept, and gone. */
export function webhooksWhere(ctx: Context): { merchantId: number; removedAt: null } {
  return { ...mine(ctx), removedAt: null }
}

/**
 * Finds an endpoint of the caller's within the walls; what writes to it stands above them.
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
