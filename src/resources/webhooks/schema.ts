import { mine } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import type { EventType as EventName } from '../../events/catalogue.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { EventType, stateEnum } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import {
  connectionType,
  countedConnectionType,
  newestFirst,
  nodesOf,
  relatedConnection,
  relatedPage,
} from '../../graphql/connection.ts'
import { readId, readSmallId } from '../../shared/ids.ts'
import { limits } from '../../shared/limits.ts'
import { webhooksWhere } from './find.ts'
import { registerWebhook, type WebhookWithSecret, registerWebhookInput } from './register.ts'
import { removeWebhook } from './remove.ts'
import { replayEvents } from './replay.ts'
import { rotateWebhookSecret } from './rotate-secret.ts'
import { type Sample, sendSample } from './send-sample.ts'
import { deliveryStates } from './states.ts'
import { updateWebhook, updateWebhookInput } from './update.ts'

/** Attempts that a delivery shows. Choice: a whole run of the schedule, and some of the run before. */
const webhookAttemptsShown = 16

const DeliveryStatus = stateEnum(
  'WebhookDeliveryStatus',
  deliveryStates,
  'Where a delivery stands: it is to be sent, its receiver has it, or it was given up and can be replayed.',
)

builder.prismaObject('WebhookAttempt', {
  scope: ['webhooks'],
  description: 'One call of a receiver, and what came of it.',
  fields: (t) => ({
    nth: t.exposeInt('nth', { description: '1, 2, 3, ... of its delivery.' }),
    statusCode: t.exposeInt('statusCode', { nullable: true, description: 'Null where no answer came.' }),
    error: t.exposeString('error', {
      nullable: true,
      description: 'Why no answer came: timeout, dns, address_refused, connect, tls, reset or malformed.',
    }),
    durationMs: t.exposeInt('durationMs'),
    answer: t.exposeString('answer', { description: 'The first 2 KiB of what the receiver answered.' }),
    address: t.exposeString('address', {
      nullable: true,
      description: 'The IP address that was connected to.',
    }),
    at: t.expose('at', { type: 'DateTime' }),
  }),
})

const Delivery = builder.prismaNode('WebhookDelivery', {
  id: { resolve: ({ id }) => id },
  findUnique: (id, ctx) => ({
    id_merchantId: { ...mine(ctx), id: readId('WebhookDelivery', id) },
    endpoint: webhooksWhere(ctx),
  }),
  nullable: true,
  scope: ['webhooks'],
  description: 'One event for one endpoint.',
  fields: (t) => ({
    databaseId: t.field({ type: 'SafeInt', resolve: ({ id }) => id }),
    type: t.exposeString('type', { description: 'The event, as its receiver is told; `test` for a sample.' }),
    sequence: t.field({
      type: 'SafeInt',
      nullable: true,
      description: "The event's place in the log; null of a sample.",
      resolve: ({ position }) => position,
    }),
    event: t.relation('event', {
      nullable: true,
      description: 'What is told; null of a sample.',
    }),
    status: t.expose('status', { type: DeliveryStatus }),
    attemptsTotal: t.exposeInt('attemptsTotal', {
      description: 'Of all its runs: a replay begins a new one.',
    }),
    attempts: t.relation('attempts', {
      description: `Its newest ${webhookAttemptsShown} attempts, the newest first.`,
      query: { orderBy: { nth: 'desc' }, take: webhookAttemptsShown },
      extensions: { lengthMax: webhookAttemptsShown },
    }),
    nextAttemptAt: t.expose('nextAttemptAt', {
      type: 'DateTime',
      nullable: true,
      description: 'What is pending without a time is sent as soon as its turn comes.',
    }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'When it began to wait; a replay of what had ended begins anew.',
    }),
    endedAt: t.expose('endedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it was delivered or given up.',
    }),
  }),
})

const Deliveries = connectionType(Delivery, 'WebhookDelivery', 'A page of deliveries.')

const webhookId = (id: string) => readSmallId('Webhook', id)

const Webhook = builder.prismaNode('WebhookEndpoint', {
  name: 'Webhook',
  id: { field: 'id' },
  // Only what is asked for: no request reads a secret.
  select: { id: true },
  findUnique: (id, ctx) => ({ ...webhooksWhere(ctx), id: webhookId(id) }),
  nullable: true,
  scope: ['webhooks'],
  description: 'An address of the merchant that events are sent to.',
  fields: (t) => ({
    databaseId: t.expose('id', { type: 'SafeInt', description: 'Its id in REST.' }),
    url: t.exposeString('url'),
    events: t.field({
      type: [EventType],
      description: 'What it is told of.',
      select: { events: true },
      resolve: ({ events }) => events as EventName[],
    }),
    isActive: t.exposeBoolean('isActive', {
      description: 'While it is not, nothing is sent, and what happens waits for it.',
    }),
    failureCount: t.exposeInt('failureCount', {
      description: 'Attempts that failed since the last that did not; 20 disable it.',
    }),
    disabledAt: t.expose('disabledAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the service disabled it.',
    }),
    lastSuccessAt: t.expose('lastSuccessAt', { type: 'DateTime', nullable: true }),
    lastFailureAt: t.expose('lastFailureAt', { type: 'DateTime', nullable: true }),
    pausedUntil: t.expose('pausedUntil', {
      type: 'DateTime',
      nullable: true,
      description: 'The receiver asked to be left alone until then (Retry-After).',
    }),
    secretOverlapsUntil: t.expose('previousSecretUntil', {
      type: 'DateTime',
      nullable: true,
      description: 'Until then deliveries are signed with the secret before the last rotation too.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime' }),
    deliveries: t.field({
      type: Deliveries,
      description: 'What was sent and is to be sent, the newest first.',
      args: {
        first: t.arg.int({ description: '1 to 100; 20 where left out.' }),
        after: t.arg.string({ description: 'Cursor of the last one that you have.' }),
        status: t.arg({ type: DeliveryStatus }),
      },
      select: ({ status, ...args }, _ctx, nested) => ({
        deliveries: nested(relatedPage(args, { ...(status && { status }) }), nodesOf('WebhookDelivery')),
      }),
      resolve: ({ deliveries }, args) => relatedConnection(args, deliveries),
    }),
  }),
})

const idWords = 'Its global id, or its id in REST.'

const Webhooks = countedConnectionType(Webhook, 'Webhook', 'A page of webhook endpoints.')

builder.queryFields((t) => ({
  webhook: t.prismaField({
    type: Webhook,
    nullable: true,
    scope: ['webhooks'],
    description: 'One webhook endpoint.',
    args: { id: t.arg.id({ required: true, description: idWords }) },
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
    description: `Webhook endpoints, newest first: ${limits.webhooksPerMerchantMax} at most.`,
    args: {
      ...t.arg.connectionArgs(),
      offset: t.arg.int({ description: 'Rows to pass over.' }),
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

/** What is left of an endpoint after a mutation: the same as a query shows. */
const theWebhook = (ctx: Context, id: number) => ({ ...webhooksWhere(ctx), id })

const WithSecret = builder.objectRef<WebhookWithSecret>('WebhookSecret').implement({
  description: 'A webhook endpoint, and its secret: it is shown here, and never again.',
  fields: (t) => ({
    secret: t.string({
      isSecret: true,
      description: 'What deliveries are signed with. Keep it where your receiver finds it.',
      resolve: ({ secret }) => secret.reveal(),
    }),
    webhook: t.prismaField({
      type: Webhook,
      resolve: (query, { id }, _args, ctx) =>
        ctx.database.prisma.webhookEndpoint.findFirstOrThrow({ ...query, where: theWebhook(ctx, id) }),
    }),
  }),
})

const Removed = builder.objectRef<{ id: number }>('RemovedWebhook').implement({
  description: 'A webhook endpoint that is gone.',
  fields: (t) => ({
    databaseId: t.expose('id', { type: 'SafeInt', description: 'The id in REST that it had.' }),
  }),
})

const SampleDelivery = builder.objectRef<Sample>('SampleDelivery').implement({
  description: 'What a receiver made of a sample event.',
  fields: (t) => ({
    delivered: t.exposeBoolean('isDelivered', { description: 'It answered 2xx in time.' }),
    statusCode: t.exposeInt('statusCode', { nullable: true, description: 'Null where no answer came.' }),
    durationMs: t.exposeInt('durationMs'),
    delivery: t.prismaField({
      type: Delivery,
      description: 'The record of it.',
      resolve: (query, { deliveryId }, _args, ctx) =>
        ctx.database.prisma.webhookDelivery.findFirstOrThrow({
          ...query,
          where: { id: deliveryId, ...mine(ctx) },
        }),
    }),
  }),
})

const Replay = builder.objectRef<{ id: number; count: number }>('EventReplay').implement({
  description: 'Events that are sent again.',
  fields: (t) => ({
    count: t.exposeInt('count', { description: 'How many are sent, or wait to be.' }),
    webhook: t.prismaField({
      type: Webhook,
      resolve: (query, { id }, _args, ctx) =>
        ctx.database.prisma.webhookEndpoint.findFirstOrThrow({ ...query, where: theWebhook(ctx, id) }),
    }),
  }),
})

const urlWords = 'https, in a sandbox also http; without credentials, and of the public internet.'
const RegisterInput = inputOf('RegisterWebhookInput', registerWebhookInput, {
  description: 'An address that events are sent to (specification: POST /webhooks).',
  fields: {
    url: urlWords,
    events: 'What it is told of.',
  },
})
const UpdateInput = inputOf('UpdateWebhookInput', updateWebhookInput, {
  description: 'What changes of an endpoint; what is left out stays (specification: PUT /webhooks).',
  fields: {
    url: urlWords,
    events: 'What it is told of from now on.',
    isActive: 'True enables it: its failures are forgotten, and what waited is sent in order.',
  },
})

builder.mutationFields((t) => ({
  registerWebhook: t.field({
    type: WithSecret,
    nullable: true,
    scope: ['webhooks'],
    description: 'Registers an address that events are sent to. Its secret is shown this once.',
    errors: refusals('INVALID_INPUT', 'NOT_FOUND'),
    args: { input: t.arg({ type: RegisterInput, required: true }) },
    resolve: (_root, { input }, ctx) => registerWebhook(ctx, input),
  }),
  updateWebhook: t.prismaField({
    type: Webhook,
    nullable: true,
    scope: ['webhooks'],
    description: 'Changes what is given of an endpoint, or enables it again.',
    errors: refusals('INVALID_INPUT', 'NOT_FOUND'),
    args: {
      id: t.arg.id({ required: true, description: idWords }),
      input: t.arg({ type: UpdateInput, required: true }),
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
    description: 'Removes an endpoint: nothing is sent there any more.',
    errors: refusals('NOT_FOUND'),
    args: { id: t.arg.id({ required: true, description: idWords }) },
    resolve: (_root, { id }, ctx) => removeWebhook(ctx, webhookId(id)),
  }),
  sendTestEvent: t.field({
    type: SampleDelivery,
    nullable: true,
    scope: ['webhooks'],
    description:
      'Sends a sample event `test` now, also while the endpoint is disabled. Its outcome disables nothing.',
    errors: refusals('NOT_FOUND', 'OVERLOADED'),
    args: { id: t.arg.id({ required: true, description: idWords }) },
    resolve: (_root, { id }, ctx) => sendSample(ctx, webhookId(id)),
  }),
  rotateWebhookSecret: t.field({
    type: WithSecret,
    nullable: true,
    scope: ['webhooks'],
    description: 'Gives an endpoint a new secret. For 24 hours deliveries are signed with the old one too.',
    errors: refusals('NOT_FOUND'),
    args: {
      id: t.arg.id({ required: true, description: idWords }),
      oldEndsNow: t.arg.boolean({ description: 'True where the old one leaked.' }),
    },
    resolve: (_root, { id, oldEndsNow }, ctx) => rotateWebhookSecret(ctx, webhookId(id), oldEndsNow === true),
  }),
  replayEvents: t.field({
    type: Replay,
    nullable: true,
    scope: ['webhooks'],
    description:
      'Sends events to an endpoint again, or for the first time where they are older than it; in order, ' +
      'under the ids that they had. Of types that it does not name none is sent.',
    errors: refusals('INVALID_INPUT', 'NOT_FOUND'),
    args: {
      webhookId: t.arg.id({ required: true, description: idWords }),
      from: t.arg({ type: 'SafeInt', description: 'The first place in the log.' }),
      to: t.arg({ type: 'SafeInt', description: 'The last place; 10,000 events at most.' }),
      ids: t.arg.idList({ description: 'Or some events, by their ids: evt_12.' }),
    },
    resolve: (_root, { webhookId: id, ...which }, ctx) => replayEvents(ctx, webhookId(id), which),
  }),
}))
