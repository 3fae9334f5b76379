import { mine } from '../../identity/callers/actor.ts'
import { isLinkEvent, type LinkEventData, type LogEvent } from '../../events/catalogue.ts'
import { builder } from '../../graphql/builder.ts'
import { afterWords, followLog, LogChange } from '../../graphql/log-changes.ts'

const PaymentLinkUse = builder.objectRef<LogEvent<LinkEventData>>('PaymentLinkUse').implement({
  description: 'A successful payment by a payment link.',
  interfaces: [LogChange],
  scope: ['payment_links'],
  fields: (t) => ({
    urlSlug: t.string({
      description: "The last part of the address of the link's page.",
      resolve: ({ data }) => data.url_slug,
    }),
    reference: t.string({
      description: 'The reference of the payment.',
      resolve: ({ data }) => data.reference,
    }),
    amount: t.field({
      type: 'Amount',
      description: 'The paid amount, in whole XOF.',
      resolve: ({ data }) => BigInt(data.amount),
    }),
    usageCount: t.int({
      description: 'Number of successful payments by the link, this one included.',
      resolve: ({ data }) => data.usage_count,
    }),
    paymentLink: t.prismaField({
      type: 'PaymentLink',
      nullable: true,
      description: 'The present state of the payment link.',
      resolve: (query, { data }, _args, ctx) =>
        ctx.database.prisma.paymentLink.findFirst({
          ...query,
          where: { id: data.payment_link_id, ...mine(ctx) },
        }),
    }),
    transaction: t.prismaField({
      type: 'Transaction',
      nullable: true,
      description: 'The present state of the payment.',
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
    description:
      'Successful payments by payment links, in order. Pass `after` to resume: no payment is ' +
      'lost or repeated.',
    args: { after: t.arg.string({ description: afterWords }) },
    subscribe: (_root, { after }, ctx) => followLog(ctx, after, isLinkEvent),
    resolve: (event) => event as LogEvent<LinkEventData>,
  }),
)
