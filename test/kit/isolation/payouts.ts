import { type IsolationRequest, get, graphql, type OwnedRow } from './asks.ts'

// The rows of the isolation matrix about payouts.

const record = '{ id databaseId reference amount destinationPhone beneficiaryName createdAt }'
const page = `{ nodes ${record} pageInfo { startCursor endCursor } }`
const list = `{ totalCount nodes ${record} }`
const byId = `query ($id: ID) { payout(id: $id) ${record} }`

// Scheduled for a later day: it needs no money, and is not sent.
const dayMs = 86_400_000
const tomorrow = () => new Date(Date.now() + dayMs).toISOString()
const created = (input: object): IsolationRequest => ({
  document: `mutation ($input: CreatePayoutInput!) { createPayout(input: $input) { __typename
    ... on Payout { databaseId status amount } ... on Refusal { code message }
    ... on DuplicatePayoutError { existingPayout { databaseId } } } }`,
  variables: { input: { amount: 1_000, ...input, scheduledAt: tomorrow() } },
})
const toNumber = { destinationPhone: '70110000', paymentMethod: 'OperatorA' }
const posted = (body: object): IsolationRequest => ({
  method: 'POST',
  path: '/payouts',
  body: { amount: 1_000, ...body, scheduled_at: tomorrow() },
})
const inRest = { destination_phone: '70110000', payment_method: 'OperatorA' }
const cancelled = (id: string): IsolationRequest => ({
  document: `mutation ($id: ID!) { cancelPayout(id: $id) { __typename ... on Payout ${record}
    ... on Refusal { code message } } }`,
  variables: { id },
})
const followed = (variables: object): IsolationRequest => ({
  document: `subscription ($after: String, $id: ID, $reference: String) {
    payoutChanged(after: $after, id: $id, reference: $reference) {
      sequence reference amount payout { destinationPhone } } }`,
  variables,
  isStream: true,
})

const decided = (call: string) => `mutation ($id: ID!) { ${call} { __typename ... on Payout ${record}
  ... on Refusal { code message } } }`
const waiting = `{ totalCount edges { cursor node { ... on Payout ${record} } } }`
const changes = (after: string): IsolationRequest => ({
  document: `subscription ($after: String) { approvalsChanged(after: $after) {
    sequence memberId reason payout { destinationPhone } } }`,
  variables: { after },
  isStream: true,
})

const number = 'counts rows of the caller'
const unsupported = 'is refused for every value'

export const payoutRows: Readonly<Record<string, OwnedRow>> = {
  'Query.payout(id)': { attack: graphql(byId, ({ payoutId }) => ({ id: payoutId })) },
  'Query.payout(reference)': {
    attack: graphql(`query ($r: String) { payout(reference: $r) ${record} }`, ({ payoutReference }) => ({
      r: payoutReference,
    })),
  },
  'Query.payout(by.id)': {
    attack: graphql(`query ($id: ID!) { payout(by: { id: $id }) ${record} }`, ({ payoutId }) => ({
      id: payoutId,
    })),
  },
  'Query.payout(by.reference)': {
    attack: graphql(
      `query ($r: String!) { payout(by: { reference: $r }) ${record} }`,
      ({ payoutReference }) => ({ r: payoutReference }),
    ),
  },
  'Query.payouts(after)': {
    attack: graphql(`query ($c: String) { payouts(first: 50, after: $c) ${page} }`, ({ payoutCursor }) => ({
      c: payoutCursor,
    })),
  },
  'Query.payouts(before)': {
    attack: graphql(`query ($c: String) { payouts(last: 50, before: $c) ${page} }`, ({ payoutCursor }) => ({
      c: payoutCursor,
    })),
  },
  'Query.payouts(first)': { harmless: number },
  'Query.payouts(last)': { harmless: number },
  'Query.payouts(offset)': { harmless: number },
  'Query.payouts(filter.reference)': {
    attack: graphql(
      `query ($r: String) { payouts(filter: { reference: $r }) ${list} }`,
      ({ payoutReference }) => ({ r: payoutReference }),
    ),
  },
  'Query.payouts(filter.createdBy)': {
    attack: graphql(`query ($m: String) { payouts(filter: { createdBy: $m }) ${list} }`, ({ keyId }) => ({
      m: `api_key:${keyId}`,
    })),
  },
  'Query.payouts(filter.search)': {
    attack: graphql(`query ($s: String) { payouts(filter: { search: $s }) ${list} }`, ({ phone }) => ({
      s: phone.slice(-6),
    })),
  },
  'Query.payouts(filter.beneficiaryId)': {
    attack: graphql(
      `query ($b: ID) { payouts(filter: { beneficiaryId: $b }) ${list} }`,
      ({ beneficiaryId }) => ({ b: beneficiaryId }),
    ),
  },
  'Mutation.createPayout(input.reference)': {
    isWrite: true,
    attack: ({ payoutReference }) => created({ ...toNumber, reference: payoutReference }),
  },
  'Mutation.createPayout(input.destinationPhone)': {
    isWrite: true,
    attack: ({ phone }) => created({ ...toNumber, destinationPhone: phone }),
  },
  'Mutation.createPayout(input.beneficiaryId)': {
    attack: ({ beneficiaryId }) => created({ beneficiaryId }),
  },
  'Mutation.createPayout(input.destination.mobile.phone)': { harmless: 'is a number that the caller pays' },
  'POST /payouts input.destination.mobile.phone': { harmless: 'is no field of REST' },
  'POST /payouts input.destination.beneficiaryId': { harmless: 'is no field of REST' },
  'Mutation.createPayout(input.destination.beneficiaryId)': {
    attack: ({ beneficiaryId }) => created({ destination: { beneficiaryId } }),
  },
  'Mutation.createPayout(input.destinationAccount)': { harmless: unsupported },
  'Mutation.cancelPayout(id)': { attack: ({ payoutId }) => cancelled(payoutId) },
  'Subscription.payoutChanged(after)': { attack: ({ sequence }) => followed({ after: sequence }) },
  'Subscription.payoutChanged(id)': { attack: ({ payoutId }) => followed({ id: payoutId, after: '0' }) },
  'Subscription.payoutChanged(reference)': {
    attack: ({ payoutReference }) => followed({ reference: payoutReference, after: '0' }),
  },

  'Mutation.approvePayout(id)': {
    byPerson: true,
    attack: graphql(decided(`approvePayout(id: $id, digest: "${'0'.repeat(64)}")`), ({ payoutId }) => ({
      id: payoutId,
    })),
  },
  'Mutation.approvePayout(digest)': { harmless: 'is compared with what the payout has' },
  'Mutation.rejectPayout(id)': {
    byPerson: true,
    attack: graphql(decided('rejectPayout(id: $id, reason: "no")'), ({ payoutId }) => ({ id: payoutId })),
  },
  'Mutation.rejectPayout(reason)': { harmless: 'is text of the caller' },
  'Query.approvalsWaiting(first)': { harmless: number },
  'Query.approvalsWaiting(after)': {
    attack: graphql(`query ($c: String) { approvalsWaiting(after: $c) ${waiting} }`, ({ payoutId }) => ({
      c: `0_${payoutId}`,
    })),
  },
  'Subscription.approvalsChanged(after)': { attack: ({ sequence }) => changes(sequence) },

  'POST /payouts input.reference': {
    isWrite: true,
    attack: ({ payoutReference }) => posted({ ...inRest, reference: payoutReference }),
  },
  'POST /payouts input.destinationPhone': {
    isWrite: true,
    attack: ({ phone }) => posted({ ...inRest, destination_phone: phone }),
  },
  'POST /payouts input.beneficiaryId': {
    attack: ({ beneficiaryId }) => posted({ beneficiary_id: beneficiaryId }),
  },
  'POST /payouts input.destinationAccount': { harmless: unsupported },
  'GET /payouts limit': { harmless: number },
  'GET /payouts offset': { harmless: number },
  'GET /payouts filter.reference': {
    attack: get(({ payoutReference }) => `/payouts?reference=${payoutReference}`),
  },
  'GET /payouts filter.createdBy': {
    attack: get(({ keyId }) => `/payouts?created_by=api_key:${keyId}`),
  },
  'GET /payouts filter.search': {
    attack: get(({ payoutReference }) => `/payouts?search=${payoutReference}`),
  },
  'GET /payouts filter.beneficiaryId': {
    attack: get(({ beneficiaryId }) => `/payouts?beneficiary_id=${beneficiaryId}`),
  },
  'GET /payouts/{id} id': { attack: get(({ payoutId }) => `/payouts/${payoutId}`) },

  'nothing: a payout by its global id': {
    attack: graphql(byId, ({ payoutNode }) => ({ id: payoutNode })),
  },
  'nothing: a payout as a node': {
    attack: graphql(
      `query ($id: ID!) { node(id: $id) { id ... on Payout ${record} } }`,
      ({ payoutNode }) => ({ id: payoutNode }),
    ),
  },
  'nothing: a payout by its global id, to cancel it': { attack: ({ payoutNode }) => cancelled(payoutNode) },
  'nothing: the payouts': { attack: graphql(`{ payouts ${list} }`, () => ({})) },
  'nothing: the payouts of a kind': {
    attack: graphql(`{ payouts(filter: { status: PENDING }) ${list} }`, () => ({})),
  },
  'nothing: the payouts in REST': { attack: get(() => '/payouts?limit=50') },
  'nothing: a payout by its global id, to approve it': {
    byPerson: true,
    attack: graphql(decided(`approvePayout(id: $id, digest: "${'0'.repeat(64)}")`), ({ payoutNode }) => ({
      id: payoutNode,
    })),
  },
  'nothing: what waits for approval': { attack: graphql(`{ approvalsWaiting ${waiting} }`, () => ({})) },
  'nothing: the whole log of approvals': { attack: () => changes('0') },
  'nothing: the whole log of payouts': { attack: () => followed({ after: '0' }) },
}
