import { mine } from '../../identity/callers/actor.ts'
import type { LinkEventData, LogEvent } from '../../events/catalogue.ts'
import { builder } from '../../graphql/builder.ts'
import { afterWords, followLog, LogChange } from '../../graphql/log-changes.ts'
import { readSmallId } from '../../shared/ids.ts'
import { noSuchLink } from './update.ts'

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
      'Successful payments by all payment links, or by one, in order. Pass `after` to resume: no payment ' +
      'is lost or repeated.',
    args: {
      id: t.arg.id({
        description: 'The payment link: its global id, or its id in REST. Default: all payment links.',
      }),
      after: t.arg.string({ description: afterWords }),
    },
    subscribe: async (_root, { id: given, after }, ctx) => {
      const types = new Set(['payment_link_used'] as const)
      if (given == null) return followLog(ctx, after, { filter: { types, data: {} } })
      const id = readSmallId('PaymentLink', given)
      const known = await ctx.database.prisma.paymentLink.count({ where: { id, ...mine(ctx) } })
      if (known === 0) throw noSuchLink()
      return followLog(ctx, after, {
        filter: { types, data: { payment_link_id: [String(id)] } },
        subject: `payment_link:${id}`,
      })
    },
    resolve: (event) => event as LogEvent<LinkEventData>,
  }),
)
