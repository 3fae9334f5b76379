import { graphql, type OwnedRow } from './asks.ts'

// The rows of the isolation matrix about API keys.

const record = '{ id databaseId name prefix lastFour scopes createdAt lastUsedFrom }'
const page = `{ totalCount nodes ${record} pageInfo { startCursor endCursor } }`
const number = 'counts rows of the caller'
const answer = '{ __typename ... on Refusal { code message } }'

export const apiKeyRows: Readonly<Record<string, OwnedRow>> = {
  'Query.apiKeys(after)': {
    attack: graphql(`query ($c: String) { apiKeys(first: 50, after: $c) ${page} }`, ({ keyCursor }) => ({
      c: keyCursor,
    })),
  },
  'Query.apiKeys(before)': {
    attack: graphql(`query ($c: String) { apiKeys(last: 50, before: $c) ${page} }`, ({ keyCursor }) => ({
      c: keyCursor,
    })),
  },
  'Query.apiKeys(first)': { harmless: number },
  'Query.apiKeys(last)': { harmless: number },
  'Query.apiKeys(offset)': { harmless: number },
  'Mutation.createApiKey(input.name)': { harmless: 'is text of the caller' },
  'Mutation.createApiKey(input.limits.addresses)': { harmless: 'are addresses of computers' },
  'Mutation.regenerateApiKey(id)': {
    attack: graphql(`mutation ($id: ID!) { regenerateApiKey(id: $id) ${answer} }`, ({ keyId }) => ({
      id: keyId,
    })),
  },
  'Mutation.revokeApiKey(id)': {
    attack: graphql(`mutation ($id: ID!) { revokeApiKey(id: $id) ${answer} }`, ({ keyNode }) => ({
      id: keyNode,
    })),
  },
  'nothing: an API key as a node': {
    attack: graphql(`query ($id: ID!) { node(id: $id) { id ... on ApiKey ${record} } }`, ({ keyNode }) => ({
      id: keyNode,
    })),
  },
  'nothing: the API keys': { attack: graphql(`{ apiKeys ${page} }`, () => ({})) },
}
