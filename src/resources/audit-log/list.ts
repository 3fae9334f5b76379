import { z } from 'zod'
import type { AuditEntry, Prisma } from '../../../prisma/generated/prisma/client.ts'
import { mine } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import { invalidInput, readInput, text } from '../../shared/input.ts'
import { type PageConnection, connect, edgeOf, type PageArgs, readPage } from '../../shared/page.ts'

const word = text({ min: 1, max: 100 })

/** The filter of a page of entries. */
export const auditFilterInput = z.object({
  actor: word.nullish(),
  operation: word.nullish(),
  target: word.nullish(),
  isPayment: z.boolean().nullish(),
  from: z.date().nullish(),
  to: z.date().nullish(),
})

interface AuditPage extends PageArgs {
  filter?: z.input<typeof auditFilterInput> | null | undefined
}

/**
 * Reads a page of the audit log of the caller's merchant, newest entry first.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export async function listAuditLog(
  ctx: Context,
  { filter, ...args }: AuditPage,
): Promise<PageConnection<AuditEntry>> {
  const page = readPage(args)
  const { actor, operation, target, isPayment, from, to } = readInput(auditFilterInput, filter ?? {})
  if (from && to && to <= from)
    throw invalidInput([{ field: 'filter.to', message: 'must be later than from' }])
  const where: Prisma.AuditEntryWhereInput = {
    ...mine(ctx),
    ...(page.after !== null && { id: { lt: page.after } }),
    ...(actor && { actor }),
    ...(operation && { operation }),
    ...(target && { target }),
    ...(isPayment != null && { isPayment }),
    ...((from ?? to) && { at: { ...(from && { gte: from }), ...(to && { lt: to }) } }),
  }
  const rows = await ctx.database.prisma.auditEntry.findMany({
    where,
    orderBy: { id: 'desc' },
    take: page.take,
  })
  return connect(page, rows.map(edgeOf))
}
