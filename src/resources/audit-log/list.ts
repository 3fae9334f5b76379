import { z } from 'zod'
import type { Prisma } from '../../../prisma/generated/prisma/client.ts'
import { mine } from '../../identity/callers/actor.ts'
import type { Context } from '../../context.ts'
import { exactText, invalidInput, readInput } from '../../shared/input.ts'
import { time, timeUntil } from '../../shared/time.ts'

const word = exactText({ min: 1, max: 100 })

/** The filter of a page of entries. */
export const auditFilterInput = z.object({
  actor: word.nullish(),
  operation: word.nullish(),
  target: word.nullish(),
  isPayment: z.boolean().nullish(),
  from: time.nullish(),
  to: timeUntil.nullish(),
})

type AuditFilter = z.input<typeof auditFilterInput>

/**
 * Returns the condition of a filter for Prisma. It selects only entries of the caller's merchant.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export function auditLogWhere(
  ctx: Context,
  filter: AuditFilter | null | undefined,
): Prisma.AuditEntryWhereInput {
  const { actor, operation, target, isPayment, from, to } = readInput(auditFilterInput, filter ?? {})
  if (from && to && to <= from)
    throw invalidInput([{ field: 'filter.to', message: 'must be later than from' }])
  return {
    ...mine(ctx),
    ...(actor && { actor }),
    ...(operation && { operation }),
    ...(target && { target }),
    ...(isPayment != null && { isPayment }),
    ...((from ?? to) && { at: { ...(from && { gte: from }), ...(to && { lt: to }) } }),
  }
}

/**
 * Counts the entries that match a filter. Without a filter, the length of the chain and the entries that wait
 * for their link give the count; with one, this counts the rows.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export async function countAuditLog(ctx: Context, filter: AuditFilter | null | undefined): Promise<number> {
  const where = auditLogWhere(ctx, filter)
  if (Object.keys(where).length > 1) return ctx.database.prisma.auditEntry.count({ where })
  const { rows } = await ctx.database.merchantPool.query<{ n: bigint }>({
    name: 'audit_log_total',
    text: `SELECT coalesce((SELECT position FROM audit_head WHERE merchant_id = $1), 0) + 1
        - coalesce((SELECT position FROM audit_link WHERE merchant_id = $1 ORDER BY position LIMIT 1), 1)
        + (SELECT count(*) FROM audit_unchained WHERE merchant_id = $1) AS n`,
    values: [mine(ctx).merchantId],
  })
  return Number(rows[0]?.n ?? 0n)
}
