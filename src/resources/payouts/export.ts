import type { z } from 'zod'
import type { Context } from '../../context.ts'
import { currency } from '../../shared/money.ts'
import { searchOf } from '../../shared/filter.ts'
import { makeExport, pageAfter, pagesOf } from '../export.ts'
import { payoutFilterInput, payoutsWhere, payoutTable } from './list.ts'

const select = {
  id: true,
  paymentMethod: true,
  destinationPhone: true,
  amount: true,
  settledAmount: true,
  status: true,
  reference: true,
  approval: true,
  beneficiaryId: true,
  beneficiaryName: true,
  operatorReference: true,
  failureReason: true,
  scheduledAt: true,
  createdAt: true,
  settledAt: true,
  reversedAt: true,
} as const
type Row = Awaited<ReturnType<typeof readRows>>[number]

/** The export of all payouts that match a filter of the list, oldest first. */
export const payoutsExport = makeExport({
  holds: 'Payout',
  input: payoutFilterInput,
  cells: {
    id: ({ id }: Row) => id,
    payment_method: (row) => row.paymentMethod,
    destination_phone: (row) => row.destinationPhone,
    amount: ({ amount }) => amount,
    settled_amount: (row) => row.settledAmount,
    currency: () => currency,
    status: ({ status }) => status,
    reference: ({ reference }) => reference,
    approval: ({ approval }) => approval,
    beneficiary_id: (row) => row.beneficiaryId,
    beneficiary_name: (row) => row.beneficiaryName,
    operator_reference: (row) => row.operatorReference,
    failure_reason: (row) => row.failureReason,
    scheduled_at: (row) => row.scheduledAt,
    created_at: (row) => row.createdAt,
    settled_at: (row) => row.settledAt,
    reversed_at: (row) => row.reversedAt,
  },
  texts: ['reference', 'beneficiary_name', 'operator_reference'],
  pages: (ctx, filter) => pagesOf<Row>((after, take) => readRows(ctx, filter, after?.id ?? 0n, take)),
})

async function readRows(
  ctx: Context,
  filter: z.output<typeof payoutFilterInput>,
  after: bigint,
  take: number,
) {
  const [where, search] = [payoutsWhere(ctx, filter), searchOf(filter.search)]
  const searched = { table: payoutTable, where, search }
  return ctx.database.prisma.payout.findMany({
    select,
    where: await pageAfter(ctx, searched, after, take),
    orderBy: { id: 'asc' },
    take,
  })
}
