import { builder } from '../../graphql/builder.ts'
import { connectionType, nodesOf, relatedConnection, relatedPage } from '../../graphql/connection.ts'
import { sumLinkPayments } from './list.ts'
import { Transaction } from './schema.ts'
import { TransactionStatus } from './status-type.ts'

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
      const sums = () => sumLinkPayments(ctx, id, status ?? null)
      return relatedConnection(
        args,
        transactions,
        async () => (await sums()).count,
        async () => (await sums()).amount,
      )
    },
  }),
)

builder.prismaObjectField('Transaction', 'paymentLink', (t) =>
  t.relation('paymentLink', {
    nullable: true,
    description: 'The payment link by which the customer pays; null when there is none.',
  }),
)
