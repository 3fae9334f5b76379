import { mine } from '../../identity/callers/actor.ts'
import { type Context, loader } from '../../context.ts'
import { builder } from '../../graphql/builder.ts'
import { connectionType, nodesOf, relatedConnection, relatedPage } from '../../graphql/connection.ts'
import { Transaction, TransactionStatus } from './schema.ts'
import type { transactionStates } from './states.ts'

type TransactionState = (typeof transactionStates.statuses)[number]

const LinkPayments = connectionType(Transaction, 'LinkPayment', 'A page of payments by a payment link.')

builder.prismaObjectField('PaymentLink', 'payments', (t) =>
  t.field({
    type: LinkPayments,
    description: 'Payments by this link, started ones included, newest first.',
    args: {
      ...t.arg.connectionArgs(),
      status: t.arg({ type: [TransactionStatus], description: 'Only payments with one of these statuses.' }),
    },
    select: ({ status, ...args }, _ctx, nested) => ({
      id: true,
      transactions: nested(
        relatedPage(args, { ...(status && { status: { in: status } }) }),
        nodesOf('Transaction'),
      ),
    }),
    resolve: ({ id, transactions }, args, ctx) =>
      relatedConnection(args, transactions, () => countPayments(ctx, id, args.status ?? null)),
  }),
)

/** Counts the payments by a link. One statement counts those of all links of an operation. */
function countPayments(
  ctx: Context,
  linkId: number,
  status: readonly TransactionState[] | null,
): Promise<number> {
  const read = async (linkIds: readonly number[]) => {
    const rows = await ctx.database.prisma.transaction.groupBy({
      by: 'paymentLinkId',
      where: {
        ...mine(ctx),
        paymentLinkId: { in: [...linkIds] },
        ...(status && { status: { in: [...status] } }),
      },
      _count: true,
    })
    const counts = new Map(rows.map(({ paymentLinkId: id, _count: n }) => [id, n]))
    return linkIds.map((id) => counts.get(id) ?? 0)
  }
  return loader(ctx, `payments of links ${status?.join()}`, read).load(linkId)
}

builder.prismaObjectField('Transaction', 'paymentLink', (t) =>
  t.relation('paymentLink', {
    nullable: true,
    description: 'The payment link by which the customer pays; null when there is none.',
  }),
)
