import { type IsolationRequest, get, graphql, type OwnedRow } from './asks.ts'

// The rows of the isolation matrix about beneficiaries.

const record = '{ id databaseId name account createdAt }'
const page = `{ nodes ${record} pageInfo { startCursor endCursor } }`
const list = `{ totalCount nodes ${record} }`
const one = `query ($id: ID!) { beneficiary(id: $id) ${record} }`

const created = (input: object): IsolationRequest => ({
  document: `mutation ($input: CreateBeneficiaryInput!) { createBeneficiary(input: $input) { __typename
    ... on Beneficiary { name account isActive } ... on Refusal { code message } } }`,
  variables: { input: { name: 'Stranger', account: '70110000', paymentMethod: 'OperatorA', ...input } },
})
const updated = (id: string, input: object = {}): IsolationRequest => ({
  document: `mutation ($id: ID!, $input: UpdateBeneficiaryInput!) {
    updateBeneficiary(id: $id, input: $input) { __typename
      ... on Beneficiary ${record} ... on Refusal { code message } } }`,
  variables: { id, input: { name: 'Taken', isActive: false, ...input } },
})
const rest = (method: string, path: string, body: object): IsolationRequest => ({ method, path, body })
const saved = { name: 'Stranger', account: '70110000', payment_method: 'OperatorA' }

const text = 'is text of the caller'
const number = 'counts rows of the caller'

export const beneficiaryRows: Readonly<Record<string, OwnedRow>> = {
  'Query.beneficiary(id)': { attack: graphql(one, ({ beneficiaryId }) => ({ id: beneficiaryId })) },
  'Query.beneficiaries(after)': {
    attack: graphql(
      `query ($c: String) { beneficiaries(first: 50, after: $c) ${page} }`,
      ({ beneficiaryCursor }) => ({ c: beneficiaryCursor }),
    ),
  },
  'Query.beneficiaries(before)': {
    attack: graphql(
      `query ($c: String) { beneficiaries(last: 50, before: $c) ${page} }`,
      ({ beneficiaryCursor }) => ({ c: beneficiaryCursor }),
    ),
  },
  'Query.beneficiaries(first)': { harmless: number },
  'Query.beneficiaries(last)': { harmless: number },
  'Query.beneficiaries(offset)': { harmless: number },
  'Mutation.createBeneficiary(input.name)': {
    isWrite: true,
    attack: ({ beneficiary }) => created({ name: beneficiary }),
  },
  'Mutation.createBeneficiary(input.account)': {
    isWrite: true,
    attack: ({ phone }) => created({ account: phone }),
  },
  'Mutation.updateBeneficiary(id)': { attack: ({ beneficiaryId }) => updated(beneficiaryId) },
  'Mutation.updateBeneficiary(input.name)': { harmless: text },
  'Mutation.updateBeneficiary(input.account)': { harmless: text },

  'POST /beneficiaries input.name': {
    isWrite: true,
    attack: ({ beneficiary }) => rest('POST', '/beneficiaries', { ...saved, name: beneficiary }),
  },
  'POST /beneficiaries input.account': {
    isWrite: true,
    attack: ({ phone }) => rest('POST', '/beneficiaries', { ...saved, account: phone }),
  },
  'GET /beneficiaries limit': { harmless: number },
  'GET /beneficiaries offset': { harmless: number },
  'GET /beneficiaries/{id} id': { attack: get(({ beneficiaryId }) => `/beneficiaries/${beneficiaryId}`) },
  'PUT /beneficiaries/{id} id': {
    attack: ({ beneficiaryId }) => rest('PUT', `/beneficiaries/${beneficiaryId}`, { name: 'Taken' }),
  },
  'PUT /beneficiaries/{id} input.name': { harmless: text },
  'PUT /beneficiaries/{id} input.account': { harmless: text },

  'nothing: a beneficiary by its global id': {
    attack: graphql(one, ({ beneficiaryNode }) => ({ id: beneficiaryNode })),
  },
  'nothing: a beneficiary as a node': {
    attack: graphql(
      `query ($id: ID!) { node(id: $id) { id ... on Beneficiary ${record} } }`,
      ({ beneficiaryNode }) => ({ id: beneficiaryNode }),
    ),
  },
  'nothing: a beneficiary by its global id, to change it': {
    attack: ({ beneficiaryNode }) => updated(beneficiaryNode),
  },
  'nothing: the beneficiaries': { attack: graphql(`{ beneficiaries ${list} }`, () => ({})) },
  'nothing: the active beneficiaries': {
    attack: graphql(`{ beneficiaries(filter: { activeOnly: true }) ${list} }`, () => ({})),
  },
  'nothing: the beneficiaries in REST': { attack: get(() => '/beneficiaries?limit=50') },
}
