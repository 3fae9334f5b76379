import { mine } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import { readId } from '../../graphql/ids.ts'
import { smallIdMax } from '../../shared/input.ts'
import { DomainError } from '../../shared/errors.ts'

/** The endpoints that a merchant has: those that were removed are kept, and gone. */
export function webhooksWhere(ctx: Context): { merchantId: number; removedAt: null } {
  return { ...mine(ctx), removedAt: null }
}

/** @param rawId a global id or the id of REST */
export function webhookId(rawId: string): number {
  return Number(readId('Webhook', rawId, smallIdMax))
}

/**
 * Finds an endpoint of the caller's within the walls; what writes to it stands above them.
 * @param rawId a global id or the id of REST
 * @throws DomainError NOT_FOUND
 */
export async function findWebhook(ctx: Context, rawId: string): Promise<{ id: number; merchantId: number }> {
  const where = { ...webhooksWhere(ctx), id: webhookId(rawId) }
  const select = { id: true, merchantId: true }
  const found = await ctx.database.prisma.webhookEndpoint.findFirst({ where, select })
  if (!found) throw noSuchWebhook()
  return found
}

export function noSuchWebhook(): DomainError {
  return new DomainError('NOT_FOUND', 'There is no such webhook endpoint.')
}
