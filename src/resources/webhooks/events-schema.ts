import { mine } from '../../identity/actor.ts'
import type { EventType as EventName } from '../../events/catalogue.ts'
import { builder } from '../../graphql/builder.ts'
import { EventType } from '../../graphql/enums.ts'
import { readCursor } from '../../graphql/live-stream.ts'
import { followLog } from '../../graphql/log-changes.ts'
import { checkPage } from '../../graphql/pagination.ts'
import { invariant } from '../../shared/invariant.ts'
import { limits } from '../../shared/limits.ts'
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

const Events = builder.connectionObject(
  { type: Event, name: 'EventConnection', description: 'A stretch of the log.' },
  { name: 'EventEdge' },
)

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
    resolve: async (_root, { first, after }, ctx) => {
      checkPage({ first })
      const { merchantId } = mine(ctx)
      const start = await ctx.feed.start(merchantId, readCursor(after ?? '0'))
      const take = first ?? limits.pageSizeDefault
      const rows = await ctx.database.prisma.event.findMany({
        where: { merchantId, position: { gt: start.after } },
        orderBy: { position: 'asc' },
        take,
      })
      const edges = rows.map((node) => ({ cursor: String(placed(node.position)), node }))
      const last = rows.at(-1)?.position ?? start.after
      return {
        edges,
        pageInfo: {
          hasNextPage: last < start.head,
          hasPreviousPage: start.after > 0n,
          startCursor: edges.at(0)?.cursor ?? null,
          endCursor: edges.at(-1)?.cursor ?? null,
        },
      }
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
