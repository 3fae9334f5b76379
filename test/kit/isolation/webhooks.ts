import type { TestApp } from '../app.ts'
import { type IsolationRequest, get, graphql, type OwnedRow } from './asks.ts'

// The rows of the isolation matrix about webhooks and the log of events.

const record = `{ id databaseId url events failureCount secretOverlapsUntil createdAt
  deliveries { nodes { id databaseId sequence status attempts { answer } event { id data } } } }`
const page = `{ nodes ${record} pageInfo { startCursor endCursor } }`
const list = `{ totalCount nodes ${record} }`
const one = `query ($id: ID!) { webhook(id: $id) ${record} }`
const refused = '... on Refusal { code message } ... on InvalidInputError { problems { field message } }'

const registered = (url: string): IsolationRequest => ({
  document: `mutation ($url: String!) { registerWebhook(input: { url: $url, events: [PAYMENT_RECEIVED] }) {
    __typename ... on WebhookSecret { secret webhook { url isActive } } ${refused} } }`,
  variables: { url },
})
const updated = (id: string): IsolationRequest => ({
  document: `mutation ($id: ID!) { updateWebhook(id: $id, input: { url: "http://127.0.0.1:1/taken" }) {
    __typename ... on Webhook ${record} ${refused} } }`,
  variables: { id },
})
const act = (mutation: string, success: string, id: string): IsolationRequest => ({
  document: `mutation ($id: ID!) { ${mutation}(id: $id) { __typename ${success}
    ... on Refusal { code message } } }`,
  variables: { id },
})
const removed = (id: string) => act('removeWebhook', '... on RemovedWebhook { databaseId }', id)
const tested = (id: string) => act('sendTestEvent', '... on SampleDelivery { delivered }', id)
const rotated = (id: string) => act('rotateWebhookSecret', '... on WebhookSecret { secret }', id)
const replayed = (webhook: string, which: object): IsolationRequest => ({
  document: `mutation ($webhook: ID!, $events: EventsToReplay, $from: SafeInt, $to: SafeInt, $ids: [ID!]) {
    replayEvents(webhookId: $webhook, events: $events, from: $from, to: $to, ids: $ids) { __typename
      ... on EventReplay { count webhook ${record} } ${refused} } }`,
  variables: { webhook, ...which },
})
const events = `query ($after: String) {
  events(after: $after) { nodes { id sequence data } pageInfo { endCursor } } }`
const followed = (after: string): IsolationRequest => ({
  document: 'subscription ($after: String) { events(after: $after) { id sequence data } }',
  variables: { after },
  isStream: true,
})
const rest = (method: string, path: string, body?: object): IsolationRequest => ({
  method,
  path,
  ...(body && { body }),
})
const hooks = { url: 'http://127.0.0.1:1/taken', events: ['payment_received'] }

const text = 'is text of the caller'
const number = 'counts rows of the caller'

export const webhookRows: Readonly<Record<string, OwnedRow>> = {
  'Query.webhook(id)': { attack: graphql(one, ({ webhookId }) => ({ id: webhookId })) },
  'Query.webhooks(after)': {
    attack: graphql(`query ($c: String) { webhooks(first: 9, after: $c) ${page} }`, ({ webhookCursor }) => ({
      c: webhookCursor,
    })),
  },
  'Query.webhooks(before)': {
    attack: graphql(`query ($c: String) { webhooks(last: 9, before: $c) ${page} }`, ({ webhookCursor }) => ({
      c: webhookCursor,
    })),
  },
  'Query.webhooks(first)': { harmless: number },
  'Query.webhooks(last)': { harmless: number },
  'Query.webhooks(offset)': { harmless: number },
  'Webhook.deliveries(first)': { harmless: number },
  'Webhook.deliveries(last)': { harmless: number },
  'Webhook.deliveries(before)': {
    attack: graphql(
      `query ($c: String) {
        webhooks { nodes { deliveries(last: 50, before: $c) { nodes { databaseId } } } } }`,
      ({ deliveryId }) => ({ c: deliveryId }),
    ),
  },
  'Webhook.deliveries(after)': {
    attack: graphql(
      `query ($c: String) {
        webhooks { nodes { deliveries(first: 50, after: $c) { nodes { databaseId } } } } }`,
      ({ deliveryId }) => ({ c: deliveryId }),
    ),
  },
  'Query.events(first)': { harmless: number },
  'Query.events(last)': { harmless: number },
  'Query.events(before)': {
    attack: graphql(
      `query ($before: String) { events(last: 50, before: $before) { nodes { id sequence data } } }`,
      ({ sequence }) => ({ before: sequence }),
    ),
  },
  'Query.events(after)': { attack: graphql(events, ({ sequence }) => ({ after: sequence })) },
  'Subscription.events(after)': { attack: ({ sequence }) => followed(sequence) },
  'Mutation.registerWebhook(input.url)': {
    isWrite: true,
    attack: ({ webhookUrl }) => registered(webhookUrl),
  },
  'Mutation.updateWebhook(id)': { attack: ({ webhookId }) => updated(webhookId) },
  'Mutation.updateWebhook(input.url)': { harmless: text },
  'Mutation.sendTestEvent(id)': { attack: ({ webhookId }) => tested(webhookId) },
  'Mutation.rotateWebhookSecret(id)': { attack: ({ webhookId }) => rotated(webhookId) },
  'Mutation.replayEvents(webhookId)': {
    attack: ({ webhookId }) => replayed(webhookId, { from: 1, to: 10 }),
  },
  'Mutation.replayEvents(ids)': {
    attack: ({ eventId }, { webhookId }) => replayed(webhookId, { ids: [eventId] }),
  },
  'Mutation.replayEvents(from)': {
    attack: ({ sequence: place }, { webhookId }) =>
      replayed(webhookId, { from: Number(place), to: Number(place) }),
  },
  'Mutation.replayEvents(events.ids)': {
    attack: ({ eventId }, { webhookId }) => replayed(webhookId, { events: { ids: [eventId] } }),
  },
  'Mutation.replayEvents(events.range.from)': {
    attack: ({ sequence: place }, { webhookId }) =>
      replayed(webhookId, { events: { range: { from: Number(place), to: Number(place) } } }),
  },
  'Mutation.replayEvents(events.range.to)': { harmless: 'is a place in the log of the caller' },
  'Mutation.replayEvents(to)': { harmless: 'is a place in the log of the caller' },
  'Mutation.removeWebhook(id)': { attack: ({ webhookId }) => removed(webhookId) },

  'POST /webhooks input.url': {
    isWrite: true,
    attack: ({ webhookUrl }) => rest('POST', '/webhooks', { ...hooks, url: webhookUrl }),
  },
  'GET /webhooks limit': { harmless: number },
  'GET /webhooks offset': { harmless: number },
  'GET /webhooks/{id} id': { attack: get(({ webhookId }) => `/webhooks/${webhookId}`) },
  'PUT /webhooks/{id} id': { attack: ({ webhookId }) => rest('PUT', `/webhooks/${webhookId}`, hooks) },
  'PUT /webhooks/{id} input.url': { harmless: text },
  'POST /webhooks/{id}/test id': { attack: ({ webhookId }) => rest('POST', `/webhooks/${webhookId}/test`) },
  'DELETE /webhooks/{id} id': { attack: ({ webhookId }) => rest('DELETE', `/webhooks/${webhookId}`) },

  'nothing: a webhook by its global id': { attack: graphql(one, ({ webhookNode }) => ({ id: webhookNode })) },
  'nothing: a webhook as a node': {
    attack: graphql(
      `query ($id: ID!) { node(id: $id) { id ... on Webhook ${record} } }`,
      ({ webhookNode }) => ({ id: webhookNode }),
    ),
  },
  'nothing: a delivery as a node': {
    attack: graphql(
      `query ($id: ID!) { node(id: $id) { id ... on WebhookDelivery { sequence event { id data } } } }`,
      ({ deliveryNode }) => ({ id: deliveryNode }),
    ),
  },
  'nothing: a webhook by its global id, to change it': { attack: ({ webhookNode }) => updated(webhookNode) },
  'nothing: a webhook by its global id, to remove it': { attack: ({ webhookNode }) => removed(webhookNode) },
  'nothing: the webhooks': { attack: graphql(`{ webhooks ${list} }`, () => ({})) },
  'nothing: the webhooks in REST': { attack: get(() => '/webhooks?limit=50') },
  'nothing: the log of events': { attack: graphql(events, () => ({})) },
}

/** Makes an endpoint with a waiting delivery; it is not active, so that nothing is sent. */
export async function webhookOf(service: TestApp, token: string, name: string) {
  // No server listens at this address.
  const url = `http://127.0.0.1:1/hooks-of-${name}`
  const body = { url, events: ['payment_received'] }
  const made = await service.rest('POST', '/webhooks', { token, body })
  const { id } = made.body['data']
  await service.rest('PUT', `/webhooks/${id}`, { token, body: { is_active: false } })
  const replay = `mutation { replayEvents(webhookId: ${id}, from: 1, to: 9) { __typename } }`
  await service.graphql(replay, {}, token)
  const shown =
    '{ webhooks { edges { cursor node { id deliveries { nodes { id databaseId event { id } } } } } } }'
  const { body: shownRows } = await service.graphql(shown, {}, token)
  const [{ cursor, node }] = shownRows['data'].webhooks.edges
  const [delivery] = node.deliveries.nodes
  return {
    webhookId: String(id),
    webhookUrl: url,
    webhookNode: node.id,
    webhookCursor: cursor,
    deliveryId: String(delivery.databaseId),
    deliveryNode: delivery.id,
    eventId: delivery.event.id,
  }
}
