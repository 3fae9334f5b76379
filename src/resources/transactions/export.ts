import type { Context } from '../../context.ts'
import { currency } from '../../shared/money.ts'
import { searchOf } from '../../shared/filter.ts'
import { makeExport, pageAfter, pagesOf } from '../export.ts'
import {
  type TransactionFilter,
  transactionFilterInput,
  transactionsWhere,
  transactionTable,
} from './list.ts'

const select = {
  id: true,
  transactionType: true,
  paymentMethod: true,
  customerPhone: true,
  amount: true,
  settledAmount: true,
  status: true,
  reference: true,
  operatorReference: true,
  failureReason: true,
  late: true,
  refundOfId: true,
  createdAt: true,
  settledAt: true,
} as const
type Row = Awaited<ReturnType<typeof readRows>>[number]

/** The export of all transactions that match a filter of the list, oldest first. */
export const transactionsExport = makeExport({
  holds: 'Transaction',
  input: transactionFilterInput,
  cells: {
    id: ({ id }: Row) => id,
    transaction_type: (row) => row.transactionType,
    payment_method: (row) => row.paymentMethod,
    customer_phone: (row) => row.customerPhone,
    amount: ({ amount }) => amount,
    settled_amount: (row) => row.settledAmount,
    currency: () => currency,
    status: ({ status }) => status,
    reference: ({ reference }) => reference,
    operator_reference: (row) => row.operatorReference,
    failure_reason: (row) => row.failureReason,
    late: ({ late }) => late,
    refund_of: (row) => row.refundOfId,
    created_at: (row) => row.createdAt,
    settled_at: (row) => row.settledAt,
  },
  texts: ['reference', 'operator_reference'],
  pages: (ctx, filter) => pagesOf<Row>((after, take) => readRows(ctx, filter, after?.id ?? 0n, take)),
})

async function readRows(ctx: Context, filter: TransactionFilter, after: bigint, take: number) {
  const [where, search] = [transactionsWhere(ctx, filter), searchOf(filter.search)]
  const searched = { table: transactionTable, where, search }
  return ctx.database.prisma.transaction.findMany({
    select,
    where: await pageAfter(ctx, searched, after, take),
    orderBy: { id: 'asc' },
    take,
  })
}
