import { mine } from '../../identity/callers/actor.ts'
import type { EventType as EventName } from '../../events/catalogue.ts'
import { builder } from '../../graphql/builder.ts'
import { connectionType, lazyConnection } from '../../graphql/connection.ts'
import { EventType } from '../../graphql/enums.ts'
import { followLog } from '../../graphql/log-changes.ts'
import { invalidInput } from '../../shared/input.ts'
import { connect, readPage } from '../../shared/page.ts'
import { eventIdText, webhookData } from './payload.ts'

const Event = builder.prismaObject('Event', {
  scope: ['webhooks'],
  description:
    "An event of the merchant's log. Webhooks, subscriptions and the query `events` show " +
    'the same events.',
  fields: (t) => ({
    id: t.id({
      description:
        'The id of the event, for example evt_12. A webhook sends it as `id`, the same at every ' +
        'attempt.',
      resolve: ({ id }) => eventIdText(id),
    }),
    sequence: t.field({
      type: 'SafeInt',
      description:
        "The position of the event in the merchant's log: 1, 2, 3 and so on. Only a restore of the " +
        'database leaves a gap.',
      resolve: ({ position }) => position,
    }),
    type: t.field({
      type: EventType,
      description: 'The type of the event.',
      resolve: ({ type }) => type as EventName,
    }),
    occurredAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'The moment when the event happened.',
    }),
    data: t.field({
      type: 'JSONObject',
      description: 'The data of the event, as a webhook sends it. It never changes.',
      resolve: ({ type, data }) => webhookData(type as EventName, data as object),
    }),
  }),
})

const Events = connectionType(Event, 'Event', 'A page of the event log.')

const afterWords = 'The sequence of the last event that you have.'

builder.queryField('events', (t) =>
  t.field({
    type: Events,
    nullable: true,
    scope: ['webhooks'],
    description:
      "The merchant's event log, oldest first. The cursor of an event is its `sequence`: read on " +
      'after the last event that you have, and you miss none.',
    args: {
      ...t.arg.connectionArgs(),
    },
    resolve: (_root, args, ctx) => {
      const page = readPage(args)
      const { merchantId } = mine(ctx)
      const read = async () => {
        const { after } = await ctx.feed.start(merchantId, page.after ?? 0n)
        const rows = await ctx.database.prisma.event.findMany({
          where: { merchantId, position: { gt: after, ...(page.before !== null && { lt: page.before }) } },
          orderBy: { position: page.isBackward ? 'desc' : 'asc' },
          take: page.take,
        })
        const edges = rows.map((node) => ({ cursor: String(node.position), node }))
        return connect({ ...page, after: after > 0n ? after : null }, edges)
      }
      return lazyConnection(read, () => ctx.feed.count(merchantId))
    },
  }),
)

builder.queryField('asOfSequence', (t) =>
  t.field({
    type: 'SafeInt',
    nullable: true,
    scope: 'authenticated',
    description:
      "The newest position in the merchant's event log before this operation read anything. Pass it, as " +
      'text, as `after` to a subscription: you then miss no change since what you read. A change that you ' +
      'have read already may come again.',
    resolve: (_root, _args, { asOfSequence }) => asOfSequence,
  }),
)

builder.subscriptionField('events', (t) =>
  t.field({
    type: Event,
    scope: ['webhooks'],
    description:
      'The events of the log, in order, or those of some types. Pass `after` to resume: no event is lost ' +
      'or repeated.',
    args: {
      types: t.arg({ type: [EventType], description: 'Only events of these types. Default: all types.' }),
      after: t.arg.string({ description: `${afterWords} Default: only new events.` }),
    },
    subscribe: (_root, { types, after }, ctx) => {
      if (types?.length === 0)
        throw invalidInput([{ field: 'types', message: 'must name at least one type' }])
      return followLog(ctx, after, types ? { filter: { types: new Set(types), data: {} } } : {})
    },
    resolve: ({ data, occurredAt, ...event }, _args, ctx) => ({
      ...event,
      ...mine(ctx),
      data: { ...data },
      createdAt: occurredAt,
    }),
  }),
)
