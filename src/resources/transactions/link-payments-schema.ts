import { builder } from '../../graphql/builder.ts'
import { connectionType, nodesOf, relatedConnection, relatedPage } from '../../graphql/connection.ts'
import { Transaction, TransactionStatus } from './schema.ts'

const LinkPayments = connectionType(Transaction, 'LinkPayment', 'A page of attempts to pay by a link.')

builder.prismaObjectField('PaymentLink', 'payments', (t) =>
  t.field({
    type: LinkPayments,
    description: 'Who paid by it, and who began to, the newest first.',
    args: {
      first: t.arg.int({ description: '1 to 100; 20 where left out.' }),
      after: t.arg.string({ description: 'Cursor of the last one that you have.' }),
      status: t.arg({ type: TransactionStatus }),
    },
    select: ({ status, ...args }, _ctx, nested) => ({
      transactions: nested(relatedPage(args, { ...(status && { status }) }), nodesOf('Transaction')),
    }),
    resolve: ({ transactions }, args) => relatedConnection(args, transactions),
  }),
)

builder.prismaObjectField('Transaction', 'paymentLink', (t) =>
  t.relation('paymentLink', { nullable: true, description: 'By which it was paid, or was to be.' }),
)
