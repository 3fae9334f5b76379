import { mine } from '../../identity/callers/actor.ts'
import { type Context, loader } from '../../context.ts'
import { builder } from '../../graphql/builder.ts'
import { connectionType, nodesOf, relatedConnection, relatedPage } from '../../graphql/connection.ts'
import { Transaction } from './schema.ts'
import { TransactionStatus } from './status-type.ts'
import type { transactionStates } from './states.ts'

type TransactionState = (typeof transactionStates.statuses)[number]

const LinkPayments = connectionType(
  Transaction,
  'LinkPayment',
  'A page of payments by a payment link.',
  'requested amounts',
  'balance',
)

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
    resolve: ({ id, transactions }, { status, ...args }, ctx) => {
      const sums = () => sumPayments(ctx, id, status ?? null)
      return relatedConnection(
        args,
        transactions,
        async () => (await sums()).count,
        async () => (await sums()).amount,
      )
    },
  }),
)

/** Counts and adds up the payments by a link. One statement does it for all links of an operation. */
function sumPayments(
  ctx: Context,
  linkId: number,
  status: readonly TransactionState[] | null,
): Promise<{ count: number; amount: bigint }> {
  const read = async (linkIds: readonly number[]) => {
    const rows = await ctx.database.prisma.transaction.groupBy({
      by: 'paymentLinkId',
      where: {
        ...mine(ctx),
        paymentLinkId: { in: [...linkIds] },
        ...(status && { status: { in: [...status] } }),
      },
      _count: true,
      _sum: { amount: true },
    })
    const sums = new Map(
      rows.map(({ paymentLinkId, _count: count, _sum: { amount } }) => [
        paymentLinkId,
        { count, amount: amount ?? 0n },
      ]),
    )
    return linkIds.map((id) => sums.get(id) ?? { count: 0, amount: 0n })
  }
  return loader(ctx, `payments of links ${status?.join()}`, read).load(linkId)
}

builder.prismaObjectField('Transaction', 'paymentLink', (t) =>
  t.relation('paymentLink', {
    nullable: true,
    description: 'The payment link by which the customer pays; null when there is none.',
  }),
)
