import { mine } from '../../identity/actor.ts'
import { isLinkEvent, type LinkEventData, type LogEvent } from '../../events/catalogue.ts'
import { builder } from '../../graphql/builder.ts'
import { afterWords, followLog, LogChange } from '../../graphql/log-changes.ts'

const PaymentLinkUse = builder.objectRef<LogEvent<LinkEventData>>('PaymentLinkUse').implement({
  description: 'A payment by a payment link, as it was at that moment.',
  interfaces: [LogChange],
  scope: ['payment_links'],
  fields: (t) => ({
    urlSlug: t.string({ resolve: ({ data }) => data.url_slug }),
    reference: t.string({ resolve: ({ data }) => data.reference }),
    amount: t.field({
      type: 'Amount',
      description: 'Whole XOF that were paid.',
      resolve: ({ data }) => BigInt(data.amount),
    }),
    usageCount: t.int({
      description: 'Payments that had succeeded by it, this one with them.',
      resolve: ({ data }) => data.usage_count,
    }),
    paymentLink: t.prismaField({
      type: 'PaymentLink',
      nullable: true,
      description: 'The payment link as it is now.',
      resolve: (query, { data }, _args, ctx) =>
        ctx.database.prisma.paymentLink.findFirst({
          ...query,
          where: { id: data.payment_link_id, ...mine(ctx) },
        }),
    }),
    transaction: t.prismaField({
      type: 'Transaction',
      nullable: true,
      description: 'The payment as it is now.',
      resolve: (query, { data }, _args, ctx) =>
        ctx.database.prisma.transaction.findFirst({
          ...query,
          where: { id: BigInt(data.transaction_id), ...mine(ctx) },
        }),
    }),
  }),
})

builder.subscriptionField('paymentLinkUsed', (t) =>
  t.field({
    type: PaymentLinkUse,
    scope: ['payment_links'],
    description: 'Every payment by a payment link, in order. It can be resumed: nothing is lost or repeated.',
    args: { after: t.arg.string({ description: afterWords }) },
    subscribe: (_root, { after }, ctx) => followLog(ctx, after, isLinkEvent),
    resolve: (event) => event as LogEvent<LinkEventData>,
  }),
)
