import { mine } from '../../identity/callers/actor.ts'
import type { Context } from '../../context.ts'
import type { EventType as EventName } from '../../events/catalogue.ts'
import { builder } from '../../graphql/builder.ts'
import { changeWords, inputOf, replacedBy } from '../../graphql/input.ts'
import { EventType } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import {
  connectionType,
  newestFirst,
  nodesOf,
  relatedConnection,
  relatedPage,
  offsetArg,
} from '../../graphql/connection.ts'
import { globalId, readSmallId } from '../../shared/ids.ts'
import { limits } from '../../shared/limits.ts'
import { grouped } from '../../shared/money.ts'
import { countDeliveries, Deliveries, Delivery, DeliveryStatus } from './deliveries-schema.ts'
import { webhooksWhere } from './find.ts'
import { registerWebhook, type WebhookWithSecret, registerWebhookInput } from './register.ts'
import { removeWebhook } from './remove.ts'
import { replayEvents, webhookReplayMax } from './replay.ts'
import { rotateWebhookSecret } from './rotate-secret.ts'
import { type Sample, sendSample } from './send-sample.ts'
import { updateWebhook, updateWebhookInput } from './update.ts'

const webhookId = (id: string) => readSmallId('Webhook', id)

const Webhook = builder.prismaNode('WebhookEndpoint', {
  name: 'Webhook',
  id: { field: 'id' },
  // Read only the requested columns: no request reads a secret.
  select: { id: true },
  findUnique: (id, ctx) => ({ ...webhooksWhere(ctx), id: webhookId(id) }),
  nullable: true,
  scope: ['webhooks'],
  description: 'A webhook endpoint: an address to which the service sends events.',
  fields: (t) => ({
    databaseId: t.expose('id', { type: 'SafeInt', description: 'The id of the endpoint in REST.' }),
    url: t.exposeString('url', { description: 'The address that receives the events.' }),
    events: t.field({
      type: [EventType],
      description: 'The types of events that the endpoint receives.',
      select: { events: true },
      resolve: ({ events }) => events as EventName[],
    }),
    isActive: t.exposeBoolean('isActive', {
      description: 'False while nothing is sent. Events wait until the endpoint is enabled again.',
    }),
    failureCount: t.exposeInt('failureCount', {
      description:
        'Number of failed attempts in a row, counted anew when the endpoint is enabled or gets another ' +
        'address. By default the endpoint is disabled at 20.',
    }),
    disabledAt: t.expose('disabledAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment when the service disabled the endpoint; null when it did not.',
    }),
    lastSuccessAt: t.expose('lastSuccessAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment of the last successful attempt; null when there was none.',
    }),
    lastFailureAt: t.expose('lastFailureAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment of the last failed attempt; null when there was none.',
    }),
    pausedUntil: t.expose('pausedUntil', {
      type: 'DateTime',
      nullable: true,
      description:
        'The moment until which the receiver asked to wait, by the header Retry-After; null ' +
        'when it did not.',
    }),
    secretOverlapsUntil: t.expose('previousSecretUntil', {
      type: 'DateTime',
      nullable: true,
      description:
        'Until this moment, deliveries are also signed with the previous secret. It can be in the ' +
        'past. Null when the secret was never rotated, or when the last rotation ended the previous ' +
        'secret at once.',
    }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'The moment when the endpoint was registered.',
    }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'The moment of the last change.' }),
    deliveries: t.field({
      type: Deliveries,
      description: 'Deliveries to this endpoint, sent and waiting ones, newest first.',
      args: {
        ...t.arg.connectionArgs(),
        status: t.arg({ type: [DeliveryStatus], description: 'Only deliveries with one of these statuses.' }),
      },
      select: ({ status, ...args }, _ctx, nested) => ({
        id: true,
        deliveries: nested(
          relatedPage(args, { ...(status && { status: { in: status } }) }),
          nodesOf('WebhookDelivery'),
        ),
      }),
      resolve: ({ id, deliveries }, args, ctx) =>
        relatedConnection(args, deliveries, () => countDeliveries(ctx, id, args.status ?? null)),
    }),
  }),
})

const Webhooks = connectionType(Webhook, 'Webhook', 'A page of webhook endpoints.')

builder.queryFields((t) => ({
  webhook: t.prismaField({
    type: Webhook,
    nullable: true,
    scope: ['webhooks'],
    description: 'One webhook endpoint; null when it does not exist.',
    args: {
      id: t.arg.id({ required: true, description: 'The endpoint: its global id, or its id in REST.' }),
    },
    resolve: (query, _root, { id }, ctx) =>
      ctx.database.prisma.webhookEndpoint.findFirst({
        ...query,
        where: { ...webhooksWhere(ctx), id: webhookId(id) },
      }),
  }),
  webhooks: t.field({
    type: Webhooks,
    scope: ['webhooks'],
    extensions: { lengthMax: limits.webhooksPerMerchantMax },
    description: 'The webhook endpoints of the merchant, newest first; there are at most 5.',
    args: {
      ...t.arg.connectionArgs(),
      offset: t.arg.int(offsetArg),
    },
    resolve: (_root, args, ctx, info) =>
      newestFirst(ctx, info, {
        type: 'Webhook',
        args,
        table: ctx.database.prisma.webhookEndpoint,
        where: webhooksWhere(ctx),
        hasSmallIds: true,
      }),
  }),
}))

/** Makes the condition with which a mutation reads its endpoint for the answer, the same as in queries. */
const theWebhook = (ctx: Context, id: number) => ({ ...webhooksWhere(ctx), id })

const WithSecret = builder.objectRef<WebhookWithSecret>('WebhookSecret').implement({
  description: 'A webhook endpoint with its secret, which is shown only here.',
  fields: (t) => ({
    secret: t.string({
      isSecret: true,
      description: 'The secret that signs deliveries. Keep it on the server that receives them.',
      resolve: ({ secret }) => secret.reveal(),
    }),
    webhook: t.prismaField({
      type: Webhook,
      description: 'The endpoint that the secret belongs to.',
      resolve: (query, { id }, _args, ctx) =>
        ctx.database.prisma.webhookEndpoint.findFirstOrThrow({ ...query, where: theWebhook(ctx, id) }),
    }),
  }),
})

const Removed = builder.objectRef<{ id: number }>('RemovedWebhook').implement({
  description: 'A webhook endpoint that was removed.',
  fields: (t) => ({
    id: t.id({
      description: 'The former global id of the endpoint.',
      resolve: ({ id }) => globalId('Webhook', id),
    }),
    databaseId: t.expose('id', { type: 'SafeInt', description: 'The former id of the endpoint in REST.' }),
  }),
})

const SampleDelivery = builder.objectRef<Sample>('SampleDelivery').implement({
  description: 'The result of a sample event that was sent to a webhook endpoint.',
  fields: (t) => ({
    delivered: t.exposeBoolean('isDelivered', {
      description: 'True when the receiver answered with a 2xx status in time.',
    }),
    statusCode: t.exposeInt('statusCode', {
      nullable: true,
      description: 'The HTTP status of the answer; null when no answer came.',
    }),
    durationMs: t.exposeInt('durationMs', { description: 'Duration of the call, in milliseconds.' }),
    delivery: t.prismaField({
      type: Delivery,
      description: 'The record of the delivery.',
      resolve: (query, { deliveryId }, _args, ctx) =>
        ctx.database.prisma.webhookDelivery.findFirstOrThrow({
          ...query,
          where: { id: deliveryId, ...mine(ctx) },
        }),
    }),
  }),
})

const Replay = builder.objectRef<{ id: number; count: number }>('EventReplay').implement({
  description: 'The events that a replay sends to a webhook endpoint.',
  fields: (t) => ({
    count: t.exposeInt('count', { description: 'Number of events that are sent or wait to be sent.' }),
    webhook: t.prismaField({
      type: Webhook,
      description: 'The endpoint that receives them.',
      resolve: (query, { id }, _args, ctx) =>
        ctx.database.prisma.webhookEndpoint.findFirstOrThrow({ ...query, where: theWebhook(ctx, id) }),
    }),
  }),
})

const urlWords =
  'The address that receives the events, without credentials: https, on the public internet. In a sandbox ' +
  'also http, and also on the machine of the service.'
const RegisterInput = inputOf('RegisterWebhookInput', registerWebhookInput, {
  description: 'A new webhook endpoint. Same as POST /webhooks in REST.',
  fields: {
    url: urlWords,
    events: 'The types of events that the endpoint receives.',
  },
})
const UpdateInput = inputOf('UpdateWebhookInput', updateWebhookInput, {
  description: changeWords('a webhook endpoint', 'PUT /webhooks/{id}'),
  fields: {
    url: urlWords,
    events: 'The types of events that the endpoint receives from now on.',
    isActive:
      'True to enable the endpoint: its failures count from 0 again, and waiting events are sent ' +
      'in order. False to disable it.',
  },
})

const SequenceRange = builder.inputType('SequenceRange', {
  description: 'A range of positions in the event log. Both ends are included.',
  fields: (t) => ({
    from: t.field({ type: 'SafeInt', required: true, description: 'The first position in the log.' }),
    to: t.field({
      type: 'SafeInt',
      required: true,
      description: `The last position in the log; at most ${grouped(webhookReplayMax)} events.`,
    }),
  }),
})
const EventsToReplay = builder.inputType('EventsToReplay', {
  isOneOf: true,
  description: 'The events that are sent again: a range of the log, or their ids.',
  fields: (t) => ({
    range: t.field({ type: SequenceRange, description: 'The events between two positions in the log.' }),
    ids: t.idList({ description: 'The ids of the events, for example evt_12.' }),
  }),
})

builder.mutationFields((t) => ({
  registerWebhook: t.field({
    type: WithSecret,
    nullable: true,
    scope: ['webhooks'],
    description:
      'Registers an address to which the service sends events. The secret is shown only in this answer.',
    errors: refusals('INVALID_INPUT', 'NOT_FOUND'),
    args: {
      input: t.arg({
        type: RegisterInput,
        description: 'The URL of the endpoint, and the event types that it receives.',
        required: true,
      }),
    },
    resolve: (_root, { input }, ctx) => registerWebhook(ctx, input),
  }),
  updateWebhook: t.prismaField({
    type: Webhook,
    nullable: true,
    scope: ['webhooks'],
    description: 'Changes the given fields of a webhook endpoint, or enables it again.',
    errors: refusals('INVALID_INPUT', 'NOT_FOUND'),
    args: {
      id: t.arg.id({ required: true, description: 'The endpoint: its global id, or its id in REST.' }),
      input: t.arg({ type: UpdateInput, description: 'The fields to change.', required: true }),
    },
    resolve: async (query, _root, args, ctx) => {
      const { id } = await updateWebhook(ctx, webhookId(args.id), args.input)
      return ctx.database.prisma.webhookEndpoint.findFirst({ ...query, where: theWebhook(ctx, id) })
    },
  }),
  removeWebhook: t.field({
    type: Removed,
    nullable: true,
    scope: ['webhooks'],
    description: 'Removes a webhook endpoint. Nothing is sent to it any more.',
    errors: refusals('NOT_FOUND'),
    args: {
      id: t.arg.id({ required: true, description: 'The endpoint: its global id, or its id in REST.' }),
    },
    resolve: (_root, { id }, ctx) => removeWebhook(ctx, webhookId(id)),
  }),
  sendTestEvent: t.field({
    type: SampleDelivery,
    nullable: true,
    scope: ['webhooks'],
    description:
      'Sends a sample event `test` to an endpoint now, also when the endpoint is disabled. A ' +
      'failure does not count towards disabling it.',
    errors: refusals('NOT_FOUND', 'OVERLOADED'),
    args: {
      id: t.arg.id({ required: true, description: 'The endpoint: its global id, or its id in REST.' }),
    },
    resolve: (_root, { id }, ctx) => sendSample(ctx, webhookId(id)),
  }),
  rotateWebhookSecret: t.field({
    type: WithSecret,
    nullable: true,
    scope: ['webhooks'],
    description:
      'Gives a webhook endpoint a new secret. For 24 hours deliveries are also signed with the old one.',
    errors: refusals('NOT_FOUND'),
    args: {
      id: t.arg.id({ required: true, description: 'The endpoint: its global id, or its id in REST.' }),
      oldEndsNow: t.arg.boolean({
        defaultValue: false,
        description: 'True to stop using the old secret at once, for example after a leak.',
      }),
    },
    resolve: (_root, { id, oldEndsNow }, ctx) => rotateWebhookSecret(ctx, webhookId(id), oldEndsNow === true),
  }),
  replayEvents: t.field({
    type: Replay,
    nullable: true,
    scope: ['webhooks'],
    description:
      'Sends events to an endpoint again, in order and with the same ids. Events from before ' +
      'the endpoint existed can be sent too. Only the event types that the endpoint receives ' +
      'are sent.',
    errors: refusals('INVALID_INPUT', 'NOT_FOUND'),
    args: {
      webhookId: t.arg.id({ required: true, description: 'The endpoint: its global id, or its id in REST.' }),
      events: t.arg({ type: EventsToReplay, description: 'The events to send.' }),
      from: t.arg({
        type: 'SafeInt',
        description: 'The first position in the log to send.',
        deprecationReason: replacedBy('events'),
      }),
      to: t.arg({
        type: 'SafeInt',
        description: `The last position in the log to send; at most ${grouped(webhookReplayMax)} events.`,
        deprecationReason: replacedBy('events'),
      }),
      ids: t.arg.idList({
        description: 'The ids of the events to send, for example evt_12.',
        deprecationReason: replacedBy('events'),
      }),
    },
    resolve: (_root, { webhookId: id, ...which }, ctx) => replayEvents(ctx, webhookId(id), which),
  }),
}))
