import { builder } from '../../graphql/builder.ts'
import { connectionType, nodesOf, relatedConnection, relatedPage } from '../../graphql/connection.ts'
import { Transaction, TransactionStatus } from './schema.ts'

const LinkPayments = connectionType(Transaction, 'LinkPayment', 'A page of payments by a payment link.')

builder.prismaObjectField('PaymentLink', 'payments', (t) =>
  t.field({
    type: LinkPayments,
    description: 'Payments by this link, started ones included, newest first.',
    args: {
      first: t.arg.int({ description: 'Page size, 1 to 100. Default: 20.' }),
      after: t.arg.string({ description: 'The cursor of the last payment that you have.' }),
      status: t.arg({ type: TransactionStatus, description: 'Only payments with this status.' }),
    },
    select: ({ status, ...args }, _ctx, nested) => ({
      transactions: nested(relatedPage(args, { ...(status && { status }) }), nodesOf('Transaction')),
    }),
    resolve: ({ transactions }, args) => relatedConnection(args, transactions),
  }),
)

builder.prismaObjectField('Transaction', 'paymentLink', (t) =>
  t.relation('paymentLink', {
    nullable: true,
    description: 'The payment link by which the customer pays; null when there is none.',
  }),
)
