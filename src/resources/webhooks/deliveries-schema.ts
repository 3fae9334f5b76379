import { mine } from '../../identity/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { connectionType } from '../../graphql/connection.ts'
import { stateEnum } from '../../graphql/enums.ts'
import { readId } from '../../shared/ids.ts'
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
    error: t.exposeString('error', {
      nullable: true,
      description:
        'The reason why no answer came: timeout, dns, address_refused, connect, tls, reset or ' +
        'malformed. Null when an answer came.',
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
    type: t.exposeString('type', {
      description: 'The type of the event, as the receiver sees it; `test` for a sample.',
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
      description: 'The newest 16 attempts, newest first.',
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

export const Deliveries = connectionType(Delivery, 'WebhookDelivery', 'A page of deliveries.')
