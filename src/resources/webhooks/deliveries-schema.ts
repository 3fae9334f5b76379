import { mine } from '../../identity/callers/actor.ts'
import { type Context, loader } from '../../context.ts'
import { type EventType as EventName, events } from '../../events/catalogue.ts'
import { builder } from '../../graphql/builder.ts'
import { connectionType } from '../../graphql/connection.ts'
import { stateEnum, wordEnum } from '../../graphql/enums.ts'
import { readId } from '../../shared/ids.ts'
import type { SendError } from '../../shared/sender.ts'
import { webhooksWhere } from './find.ts'
import { deliveryStates } from './states.ts'

/** Attempts that a delivery shows. Choice: all attempts of the schedule, and some from before a replay. */
const webhookAttemptsShown = 16

export const DeliveryStatus = stateEnum(
  'WebhookDeliveryStatus',
  deliveryStates,
  'The status of a delivery.',
  {
    dead: 'The service stopped sending the delivery. `replayEvents` can send the event again.',
    delivered: 'The receiver has the event.',
    pending: 'The event waits to be sent, or to be sent again.',
  },
)

const WebhookEventType = wordEnum<EventName | 'test'>(
  'WebhookEventType',
  {
    ...(Object.fromEntries(Object.entries(events).map(([type, { tells }]) => [type, tells])) as Record<
      EventName,
      string
    >),
    test: 'A sample, which `sendTestEvent` sends.',
  },
  'The type of an event that a webhook receives.',
)
const DeliveryError = wordEnum<SendError>(
  'WebhookAttemptError',
  {
    aborted:
      'The service stopped waiting, for example because it was ending. This says nothing of the receiver.',
    address_refused: 'The address is not on the public internet, so that nothing was sent.',
    connect: 'The connection could not be opened.',
    dns: 'The name of the receiver has no address.',
    malformed: 'The answer was no valid HTTP.',
    reset: 'The receiver closed the connection before it answered.',
    timeout: 'The receiver did not answer in time.',
    tls: 'The encrypted connection could not be set up, for example because of an expired certificate.',
  },
  'The reason why no answer came to a webhook.',
)

builder.prismaObject('WebhookAttempt', {
  scope: ['webhooks'],
  description: 'One attempt to deliver an event, and its result.',
  fields: (t) => ({
    nth: t.exposeInt('nth', {
      description: 'The number of the attempt within its delivery, counted from 1.',
    }),
    statusCode: t.exposeInt('statusCode', {
      nullable: true,
      description: 'The HTTP status of the answer; null when no answer came.',
    }),
    error: t.field({
      type: DeliveryError,
      resolve: ({ error }) => error as SendError | null,
      nullable: true,
      description: 'The reason why no answer came; null when an answer came.',
    }),
    durationMs: t.exposeInt('durationMs', { description: 'Duration of the attempt, in milliseconds.' }),
    answer: t.exposeString('answer', { description: "The first 2 KiB of the receiver's answer." }),
    address: t.exposeString('address', {
      nullable: true,
      description: 'The IP address of the receiver; null when there was no connection.',
    }),
    at: t.expose('at', { type: 'DateTime', description: 'The moment of the attempt.' }),
  }),
})

export const Delivery = builder.prismaNode('WebhookDelivery', {
  id: { resolve: ({ id }) => id },
  findUnique: (id, ctx) => ({
    id_merchantId: { ...mine(ctx), id: readId('WebhookDelivery', id) },
    endpoint: webhooksWhere(ctx),
  }),
  nullable: true,
  scope: ['webhooks'],
  description: 'The delivery of one event to one endpoint.',
  fields: (t) => ({
    databaseId: t.field({ type: 'SafeInt', description: 'The id of the delivery.', resolve: ({ id }) => id }),
    type: t.field({
      type: WebhookEventType,
      resolve: ({ type }) => type as EventName | 'test',
      description: 'The type of the event, which the receiver sees in small letters; TEST for a sample.',
    }),
    sequence: t.field({
      type: 'SafeInt',
      nullable: true,
      description: 'The position of the event in the log; null for a sample.',
      resolve: ({ position }) => position,
    }),
    event: t.relation('event', {
      nullable: true,
      description: 'The event that is delivered; null for a sample.',
    }),
    status: t.expose('status', { type: DeliveryStatus, description: 'The present status of the delivery.' }),
    attemptsTotal: t.exposeInt('attemptsTotal', {
      description: 'Number of attempts in all, replays included.',
    }),
    attempts: t.relation('attempts', {
      description: `The newest ${webhookAttemptsShown} attempts, newest first.`,
      query: { orderBy: { nth: 'desc' }, take: webhookAttemptsShown },
      extensions: { lengthMax: webhookAttemptsShown },
    }),
    nextAttemptAt: t.expose('nextAttemptAt', {
      type: 'DateTime',
      nullable: true,
      description:
        'The moment of the next attempt. Null when the delivery has ended, or is sent as soon ' +
        'as possible.',
    }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'The moment when the delivery was queued. A replay of an ended delivery sets it again.',
    }),
    endedAt: t.expose('endedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment when the status became DELIVERED or DEAD; null while it is PENDING.',
    }),
  }),
})

/**
 * Counts the deliveries to an endpoint. If one operation counts those of several endpoints, one statement
 * counts all.
 */
export function countDeliveries(
  ctx: Context,
  endpointId: number,
  status: readonly (typeof deliveryStates.statuses)[number][] | null,
): Promise<number> {
  const read = async (endpointIds: readonly number[]) => {
    const rows = await ctx.database.prisma.webhookDelivery.groupBy({
      by: 'endpointId',
      where: {
        ...mine(ctx),
        endpointId: { in: [...endpointIds] },
        ...(status && { status: { in: [...status] } }),
      },
      _count: true,
    })
    const counts = new Map(rows.map(({ endpointId: id, _count: n }) => [id, n]))
    return endpointIds.map((id) => counts.get(id) ?? 0)
  }
  return loader(ctx, `deliveries of endpoints ${status?.join()}`, read).load(endpointId)
}

export const Deliveries = connectionType(Delivery, 'WebhookDelivery', 'A page of deliveries.')
