import { builder } from '../../graphql/builder.ts'
import { connectionOf, newestOf, nodesOf } from '../../graphql/pagination.ts'
import { Transaction, TransactionStatus } from './schema.ts'

const LinkPayments = builder.connectionObject(
  { type: Transaction, name: 'LinkPaymentConnection', description: 'A page of attempts to pay by a link.' },
  { name: 'LinkPaymentEdge' },
)

builder.prismaObjectField('PaymentLink', 'payments', (t) =>
  t.field({
    type: LinkPayments,
    description: 'Who paid by it, and who began to, the newest first.',
    args: {
      first: t.arg.int({ description: '1 to 100; 20 where left out.' }),
      after: t.arg.string({ description: 'Cursor of the last one that you have.' }),
      status: t.arg({ type: TransactionStatus }),
    },
    select: ({ status, ...page }, _ctx, nested) => {
      const { where, ...query } = newestOf(page)
      const asked = { ...query, where: { ...where, ...(status && { status }) } }
      return { transactions: nested(asked, nodesOf('Transaction')) }
    },
    resolve: ({ transactions }, args) => connectionOf(transactions, args),
  }),
)

builder.prismaObjectField('Transaction', 'paymentLink', (t) =>
  t.relation('paymentLink', { nullable: true, description: 'By which it was paid, or was to be.' }),
)
