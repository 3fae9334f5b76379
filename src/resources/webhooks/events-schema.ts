import { mine } from '../../identity/actor.ts'
import type { EventType as EventName } from '../../events/catalogue.ts'
import { builder } from '../../graphql/builder.ts'
import { connectionType } from '../../graphql/connection.ts'
import { EventType } from '../../graphql/enums.ts'
import { followLog } from '../../graphql/log-changes.ts'
import { invariant } from '../../shared/invariant.ts'
import { connect, readPage } from '../../shared/page.ts'
import { eventIdText, webhookData } from './payload.ts'

const Event = builder.prismaObject('Event', {
  scope: ['webhooks'],
  description: 'A line of the log of what happened: what webhooks, streams and this tell of.',
  fields: (t) => ({
    id: t.id({
      description: 'What a webhook has as `id`, the same on every attempt: evt_12.',
      resolve: ({ id }) => eventIdText(id),
    }),
    sequence: t.field({
      type: 'SafeInt',
      description: 'Place in the one log of the merchant: 1, 2, 3, ... without a gap.',
      resolve: ({ position }) => placed(position),
    }),
    type: t.field({ type: EventType, resolve: ({ type }) => type as EventName }),
    occurredAt: t.expose('createdAt', { type: 'DateTime' }),
    data: t.field({
      type: 'JSONObject',
      description: 'What a webhook has as `data`, frozen at the event.',
      resolve: ({ type, data }) => webhookData(type as EventName, data as object),
    }),
  }),
})

const Events = connectionType(Event, 'Event', 'A stretch of the log.')

const afterWords = 'Sequence of the last event that you have'

builder.queryField('events', (t) =>
  t.field({
    type: Events,
    nullable: true,
    scope: ['webhooks'],
    description:
      'The log of all that happened, oldest first: read on after what you have, and nothing is missing.',
    args: {
      first: t.arg.int({ description: '1 to 100; 20 where left out.' }),
      after: t.arg.string({ description: `${afterWords}; the whole log where left out.` }),
    },
    resolve: async (_root, args, ctx) => {
      const page = readPage(args)
      const { merchantId } = mine(ctx)
      const { after } = await ctx.feed.start(merchantId, page.after ?? 0n)
      const rows = await ctx.database.prisma.event.findMany({
        where: { merchantId, position: { gt: after } },
        orderBy: { position: 'asc' },
        take: page.take,
      })
      const edges = rows.map((node) => ({ cursor: String(placed(node.position)), node }))
      return connect({ ...page, after: after > 0n ? after : null }, edges)
    },
  }),
)

builder.subscriptionField('events', (t) =>
  t.field({
    type: Event,
    scope: ['webhooks'],
    description: 'Every event of the log, in order. It can be resumed: nothing is lost or repeated.',
    args: { after: t.arg.string({ description: `${afterWords}; without it, what comes next.` }) },
    subscribe: (_root, { after }, ctx) => followLog(ctx, after),
    resolve: ({ data, occurredAt, ...event }, _args, ctx) => ({
      ...event,
      ...mine(ctx),
      data: { ...data },
      createdAt: occurredAt,
    }),
  }),
)

/** Only what has its place is ever read. */
function placed(position: bigint | null): bigint {
  invariant(position !== null, 'an event that is shown is numbered')
  return position
}
