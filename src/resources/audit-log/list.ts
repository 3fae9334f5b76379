import { z } from 'zod'
import type { Prisma } from '../../../prisma/generated/prisma/client.ts'
import { mine } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import { beyond, checkPage } from '../../graphql/pagination.ts'
import { invalidInput, readInput, text } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'

const word = text({ min: 1, max: 100 })

/** Which entries a page shows. */
const auditFilterInput = z.object({
  actor: word.nullish(),
  operation: word.nullish(),
  target: word.nullish(),
  isPayment: z.boolean().nullish(),
  from: z.date().nullish(),
  to: z.date().nullish(),
})

interface AuditPage {
  first?: number | null | undefined
  after?: string | null | undefined
  filter?: z.input<typeof auditFilterInput> | null | undefined
}

/**
 * A page of the audit log of the caller's merchant, newest first, as a connection has it. Its cursors are
 * ids.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export async function listAuditLog(ctx: Context, { first, after, filter }: AuditPage) {
  checkPage({ first })
  const { actor, operation, target, isPayment, from, to } = readInput(auditFilterInput, filter ?? {})
  if (from && to && to <= from) throw invalidInput([{ field: 'filter.to', message: 'must lie after from' }])
  const id = after == null ? null : beyond({ id: after }, 1)
  const where: Prisma.AuditEntryWhereInput = {
    ...mine(ctx),
    ...(id && { id }),
    ...(actor && { actor }),
    ...(operation && { operation }),
    ...(target && { target }),
    ...(isPayment != null && { isPayment }),
    ...((from ?? to) && { at: { ...(from && { gte: from }), ...(to && { lt: to }) } }),
  }
  const take = first ?? limits.pageSizeDefault
  const rows = await ctx.database.prisma.auditEntry.findMany({
    where,
    orderBy: { id: 'desc' },
    take: take + 1,
  })
  const edges = rows.slice(0, take).map((node) => ({ cursor: String(node.id), node }))
  return {
    edges,
    pageInfo: {
      hasNextPage: rows.length > take,
      hasPreviousPage: id !== null,
      startCursor: edges.at(0)?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
  }
}
