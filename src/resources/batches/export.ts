import { z } from 'zod'
import { mine } from '../../identity/callers/actor.ts'
import type { Context } from '../../context.ts'
import { smallIdOf } from '../../shared/ids.ts'
import { oneOf } from '../../shared/input.ts'
import { currency } from '../../shared/money.ts'
import { makeExport, pagesOf } from '../export.ts'
import { noSuchBatch } from './create.ts'
import { recipientStates } from './states.ts'

const input = z.object({
  batchId: smallIdOf('Batch'),
  status: oneOf(recipientStates.statuses).nullish(),
})

const select = {
  id: true,
  batchId: true,
  name: true,
  account: true,
  amount: true,
  settledAmount: true,
  paymentMethod: true,
  status: true,
  operatorReference: true,
  failureReason: true,
  sentAt: true,
  settledAt: true,
  reversedAt: true,
} as const
type Row = Awaited<ReturnType<typeof readRows>>[number]

/** The table of the recipients of a batch and the outcome of each, in the order in which they were added. */
export const recipientsExport = makeExport({
  holds: 'BatchRecipient',
  input,
  cells: {
    id: ({ id }: Row) => id,
    batch_id: (row) => row.batchId,
    name: ({ name }) => name,
    account: ({ account }) => account,
    amount: ({ amount }) => amount,
    settled_amount: (row) => row.settledAmount,
    currency: () => currency,
    payment_method: (row) => row.paymentMethod,
    status: ({ status }) => status,
    operator_reference: (row) => row.operatorReference,
    failure_reason: (row) => row.failureReason,
    sent_at: (row) => row.sentAt,
    settled_at: (row) => row.settledAt,
    reversed_at: (row) => row.reversedAt,
  },
  texts: ['name', 'operator_reference'],
  async *pages(ctx, { batchId: id, status }) {
    const where = { ...mine(ctx), batchId: id, ...(status && { status }) }
    const batch = await ctx.database.prisma.batch.findFirst({
      where: { id, ...mine(ctx) },
      select: { id: true },
    })
    if (!batch) throw noSuchBatch()
    yield* pagesOf<Row>((after, take) => readRows(ctx, { ...where, id: { gt: after?.id ?? 0n } }, take))
  },
})

async function readRows(ctx: Context, where: object, take: number) {
  return ctx.database.prisma.batchRecipient.findMany({ select, where, orderBy: { id: 'asc' }, take })
}
