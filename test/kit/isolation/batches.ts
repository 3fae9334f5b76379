import type { TestApp } from '../app.ts'
import { formHeaders, formOf } from '../form.ts'
import { type IsolationRequest, get, graphql, type KnownRows, type OwnedRow } from './asks.ts'

// The rows of the isolation matrix about bulk pay.

const record = '{ id databaseId title status recipientCount totalAmount createdAt }'
const person = '{ id databaseId name account amount batch { title } }'
const byId = `query ($id: ID!) { batch(id: $id) ${record} }`
const changed = (call: string) => `mutation ($id: ID!) { ${call} { __typename
  ... on BatchPayload { batch ${record} } ... on Refusal { code message } } }`
const decided = (call: string) => `mutation ($id: ID!) { ${call} { __typename ... on Batch ${record}
  ... on Refusal { code message } } }`
const added = changed(
  'addRecipients(id: $id, recipients: [{ name: "Moussa", account: "70000001", amount: 1000 }])',
)
const created = (input: object, more: object = {}): IsolationRequest => ({
  document: `mutation ($input: CreateBatchInput!) { createBatch(input: $input) { __typename
    ... on BatchPayload { batch { databaseId status recipientCount } } ... on Refusal { code message } } }`,
  variables: { input: { recipients: [{ ...moussa, ...more }], ...input } },
})
const page = `{ nodes ${record} pageInfo { startCursor endCursor } }`
const list = `{ totalCount nodes ${record} }`
const whom = `{ totalCount nodes ${person} pageInfo { startCursor endCursor } }`
const recipients = (args: string) =>
  `query ($c: String) { batches(first: 50) { nodes { recipients(${args}) ${whom} } } }`
const followed = (variables: object): IsolationRequest => ({
  document: `subscription ($id: ID, $old: ID, $after: String) {
    batchProgress(id: $id, batchId: $old, after: $after) { sequence totalAmount batch { title } } }`,
  variables,
  isStream: true,
})
const moussa = { name: 'Moussa', account: '70000001', amount: 1_000 }
const posted = (path: string, body: object = {}): IsolationRequest => ({
  method: 'POST',
  path: `/bulk/batches${path}`,
  body,
})

const text = 'is text of the caller'
const number = 'counts rows of the caller'
const ownBatch = 'is about the batch that is named'

const waiting = `{ totalCount edges { cursor node { ... on Batch ${record} } } }`

export const batchRows: Readonly<Record<string, OwnedRow>> = {
  'Query.batch(id)': { attack: graphql(byId, ({ batchId }) => ({ id: batchId })) },
  'Query.batches(after)': {
    attack: graphql(`query ($c: String) { batches(first: 50, after: $c) ${page} }`, ({ batchCursor }) => ({
      c: batchCursor,
    })),
  },
  'Query.batches(before)': {
    attack: graphql(`query ($c: String) { batches(last: 50, before: $c) ${page} }`, ({ batchCursor }) => ({
      c: batchCursor,
    })),
  },
  'Query.batches(first)': { harmless: number },
  'Query.batches(last)': { harmless: number },
  'Query.batches(offset)': { harmless: number },
  'Batch.recipients(after)': {
    attack: graphql(recipients('first: 50, after: $c'), ({ recipientCursor }) => ({ c: recipientCursor })),
  },
  'Batch.recipients(before)': {
    attack: graphql(recipients('last: 50, before: $c'), ({ recipientCursor }) => ({ c: recipientCursor })),
  },
  'Batch.recipients(first)': { harmless: number },
  'Batch.recipients(last)': { harmless: number },
  'Batch.recipients(offset)': { harmless: number },
  'Query.batches(filter.createdBy)': {
    attack: graphql(
      'query ($m: String) { batches(filter: { createdBy: $m }) { totalCount nodes { databaseId title } } }',
      ({ keyId }) => ({ m: `api_key:${keyId}` }),
    ),
  },
  'Batch.recipients(filter.account)': {
    attack: graphql(recipients('filter: { account: $c }'), ({ phone }) => ({ c: phone })),
  },
  'Batch.recipients(filter.search)': {
    attack: graphql(recipients('filter: { search: $c }'), ({ beneficiary }) => ({ c: beneficiary })),
  },
  'Batch.recipients(filter.name)': {
    attack: graphql(recipients('filter: { name: $c }'), ({ beneficiary }) => ({ c: beneficiary })),
  },
  'Mutation.createBatch(input.title)': { harmless: text },
  'Mutation.createBatch(input.recipients.name)': { harmless: text },
  'Mutation.createBatch(input.recipients.account)': {
    isWrite: true,
    attack: ({ phone }) => created({}, { account: phone }),
  },
  'Mutation.addRecipients(id)': { attack: graphql(added, ({ batchId }) => ({ id: batchId })) },
  'Mutation.addRecipients(recipients.name)': { harmless: ownBatch },
  'Mutation.addRecipients(recipients.account)': { harmless: ownBatch },
  'Mutation.processBatch(id)': {
    attack: graphql(changed('processBatch(id: $id)'), ({ batchId }) => ({ id: batchId })),
  },
  'Mutation.cancelBatch(id)': {
    attack: graphql(changed('cancelBatch(id: $id)'), ({ batchId }) => ({ id: batchId })),
  },
  'Mutation.retryFailed(batchId)': {
    attack: graphql(changed('retryFailed(batchId: $id)'), ({ batchId }) => ({ id: batchId })),
  },

  'Mutation.approveBatch(id)': {
    byPerson: true,
    attack: graphql(decided(`approveBatch(id: $id, digest: "${'0'.repeat(64)}")`), ({ batchId }) => ({
      id: batchId,
    })),
  },
  'Mutation.approveBatch(digest)': { harmless: 'is compared with what the batch has' },
  'Mutation.rejectBatch(id)': {
    byPerson: true,
    attack: graphql(decided('rejectBatch(id: $id, reason: "no")'), ({ batchId }) => ({ id: batchId })),
  },
  'Mutation.rejectBatch(reason)': { harmless: text },
  'Subscription.batchProgress(id)': { attack: ({ batchId }) => followed({ id: batchId, after: '0' }) },
  'Subscription.batchProgress(batchId)': {
    attack: ({ batchId }) => followed({ old: batchId, after: '0' }),
  },
  'Subscription.batchProgress(after)': { attack: ({ sequence }) => followed({ after: sequence }) },

  'POST /bulk/batches input.title': { harmless: text },
  'POST /bulk/batches input.recipients.name': { harmless: text },
  'POST /bulk/batches input.recipients.account': {
    isWrite: true,
    attack: ({ phone }) => posted('', { recipients: [{ ...moussa, account: phone }] }),
  },
  'POST /bulk/batches/import input.title': { harmless: text },
  'POST /bulk/batches/import input.recipients.name': { harmless: text },
  'POST /bulk/batches/import input.recipients.account': {
    isWrite: true,
    attack: ({ phone }) => ({
      method: 'POST',
      path: '/bulk/batches/import',
      headers: formHeaders,
      body: formOf(`name,account,amount\nMoussa,${phone},1000`),
    }),
  },
  'GET /bulk/batches/{id} id': { attack: get(({ batchId }) => `/bulk/batches/${batchId}`) },
  'POST /bulk/batches/{id}/recipients id': {
    attack: ({ batchId }) => posted(`/${batchId}/recipients`, { recipients: [moussa] }),
  },
  'POST /bulk/batches/{id}/recipients recipients.name': { harmless: ownBatch },
  'POST /bulk/batches/{id}/recipients recipients.account': { harmless: ownBatch },
  'GET /bulk/batches/{id}/recipients id': {
    attack: get(({ batchId }) => `/bulk/batches/${batchId}/recipients`),
  },
  'GET /bulk/batches/{id}/recipients limit': { harmless: number },
  'GET /bulk/batches/{id}/recipients offset': { harmless: number },
  'GET /bulk/batches/{id}/recipients filter.account': { harmless: ownBatch },
  'GET /bulk/batches/{id}/recipients filter.name': { harmless: ownBatch },
  'GET /bulk/batches/{id}/recipients filter.search': { harmless: ownBatch },
  'POST /bulk/batches/{id}/process id': { attack: ({ batchId }) => posted(`/${batchId}/process`) },
  'POST /bulk/batches/{id}/cancel id': { attack: ({ batchId }) => posted(`/${batchId}/cancel`) },

  'nothing: the export of recipients': {
    attack: get(({ batchId }) => `/exports/recipients.csv?batch_id=${batchId}`),
  },
  'nothing: the export of recipients by a global id': {
    attack: get(({ batchNode }) => `/exports/recipients.csv?batch_id=${encodeURIComponent(batchNode)}`),
  },
  'nothing: a batch by its global id': { attack: graphql(byId, ({ batchNode }) => ({ id: batchNode })) },
  'nothing: the batches that wait for approval, after one': {
    attack: graphql(`query ($c: String) { approvalsWaiting(after: $c) ${waiting} }`, ({ batchId }) => ({
      c: `0_b${batchId}`,
    })),
  },
  'nothing: a batch as a node': {
    attack: graphql(`query ($id: ID!) { node(id: $id) { id ... on Batch ${record} } }`, ({ batchNode }) => ({
      id: batchNode,
    })),
  },
  'nothing: a recipient as a node': {
    attack: graphql(
      `query ($id: ID!) { node(id: $id) { id ... on BatchRecipient ${person} } }`,
      ({ recipientNode }) => ({ id: recipientNode }),
    ),
  },
  'nothing: a recipient, and what its operator said': {
    attack: graphql(
      `query ($id: ID!) { node(id: $id) { ... on BatchRecipient { evidence { correlationId } } } }`,
      ({ recipientNode }) => ({ id: recipientNode }),
    ),
  },
  'nothing: the batches': { attack: graphql(`{ batches ${list} }`, () => ({})) },
  'nothing: the whole log of batches': { attack: () => followed({ after: '0' }) },
  'nothing: the batches of a status, and their recipients': {
    attack: graphql(`{ batches(filter: { status: DRAFT }) { nodes { recipients ${whom} } } }`, () => ({})),
  },
  'nothing: a batch by its global id, to approve it': {
    byPerson: true,
    attack: graphql(decided(`approveBatch(id: $id, digest: "${'0'.repeat(64)}")`), ({ batchNode }) => ({
      id: batchNode,
    })),
  },
  'nothing: a batch by its global id, to cancel it': {
    attack: graphql(changed('cancelBatch(id: $id)'), ({ batchNode }) => ({ id: batchNode })),
  },
}

type Batch = Pick<KnownRows, 'batchId' | 'batchNode' | 'batchCursor' | 'recipientNode' | 'recipientCursor'>

/** Makes a draft that the balance does not cover, so that it stays a draft. */
export async function batchOf(
  service: TestApp,
  token: string,
  name: string,
  paid: { phone: string; amount: number },
): Promise<Batch> {
  const { phone: account, amount } = paid
  const rows = [{ name: `Awa of ${name}`, account, amount: 100 * amount }]
  const body = { title: `Salaries of ${name}`, recipients: rows }
  const made = await service.rest('POST', '/bulk/batches', { token, body })
  const { id } = made.body['data']
  const read = await service.graphql(
    '{ batches { edges { cursor node { id recipients { edges { cursor node { id } } } } } } }',
    {},
    token,
  )
  const [{ cursor, node }] = read.body['data'].batches.edges
  const [recipient] = node.recipients.edges
  return {
    batchId: String(id),
    batchNode: node.id,
    batchCursor: cursor,
    recipientNode: recipient.node.id,
    recipientCursor: recipient.cursor,
  }
}

/** The same names, of no batch. @param renamed replaces an id within a name */
export function noBatchLike(
  known: KnownRows,
  batch: string,
  recipient: string,
  renamed: (name: string, was: string, becomes: string) => string,
): Batch {
  return {
    batchId: batch,
    batchNode: renamed(known.batchNode, known.batchId, batch),
    batchCursor: batch,
    recipientNode: withId(known.recipientNode, recipient),
    recipientCursor: recipient,
  }
}

function withId(encoded: string, id: string): string {
  const decoded = Buffer.from(encoded, 'base64').toString()
  return Buffer.from(decoded.replace(/\d+$/, id)).toString('base64')
}
