import { makeMember } from '../members.ts'
import type { TestApp, TestMerchant } from '../app.ts'
import { type IsolationRequest, get, graphql, type KnownRows, type OwnedRow } from './asks.ts'

// The rows of the isolation matrix about members.

const record = '{ id databaseId name email role status createdAt }'
const page = `{ nodes ${record} pageInfo { startCursor endCursor } }`
const one = `query ($id: ID!) { member(id: $id) ${record} }`

const changed = (field: string, given: string): string => `mutation ($id: ID!) {
  ${field}(id: $id${given}) { __typename ... on TeamMember ${record} ... on Refusal { code message } } }`
const rest = (method: string, path: string, body: object): IsolationRequest => ({ method, path, body })

const text = 'is text of the caller'
const number = 'counts rows of the caller'
const memberToken = 'is proven by what is given with it: who has that may'

export const teamRows: Readonly<Record<string, OwnedRow>> = {
  'Query.member(id)': { attack: graphql(one, ({ memberId }) => ({ id: memberId })) },
  'Query.members(after)': {
    attack: graphql(`query ($c: String) { members(first: 50, after: $c) ${page} }`, ({ memberCursor }) => ({
      c: memberCursor,
    })),
  },
  'Query.members(before)': {
    attack: graphql(`query ($c: String) { members(last: 50, before: $c) ${page} }`, ({ memberCursor }) => ({
      c: memberCursor,
    })),
  },
  'Query.members(first)': { harmless: number },
  'Query.members(last)': { harmless: number },
  'Query.members(offset)': { harmless: number },
  'Query.invitation(token)': { harmless: memberToken },
  'Query.sessions(memberId)': {
    attack: graphql(
      'query ($id: ID) { sessions(memberId: $id) { databaseId memberId createdAt lastUsedFrom } }',
      ({ memberId }) => ({ id: memberId }),
    ),
  },
  'Mutation.inviteMember(input.name)': { harmless: text },
  'Mutation.inviteMember(input.email)': {
    isWrite: true,
    attack: ({ memberEmail }) => ({
      document: `mutation ($input: InviteMemberInput!) { inviteMember(input: $input) { __typename
        ... on TeamMember { name status } ... on Refusal { code message } } }`,
      variables: { input: { name: 'Stranger', email: memberEmail } },
    }),
  },
  'Mutation.resendInvitation(id)': {
    attack: graphql(changed('resendInvitation', ''), ({ memberId }) => ({ id: memberId })),
  },
  'Mutation.changeMemberRole(id)': {
    attack: graphql(changed('changeMemberRole', ', role: ADMIN'), ({ memberId }) => ({ id: memberId })),
  },
  'Mutation.removeMember(id)': {
    attack: graphql(changed('removeMember', ''), ({ memberId }) => ({ id: memberId })),
  },
  'Mutation.removeMember(keepKeys)': {
    attack: ({ keyId }, { memberId }) => ({
      document: changed('removeMember', ', keepKeys: $keep').replace('$id: ID!', '$id: ID!, $keep: [ID!]'),
      variables: { id: memberId, keep: [keyId] },
    }),
    byPerson: true,
  },
  'Mutation.revokeSession(id)': {
    attack: graphql(
      'mutation ($id: ID!) { revokeSession(id: $id) { __typename ... on Refusal { code message } } }',
      ({ sessionId }) => ({ id: sessionId }),
    ),
  },
  'Mutation.signIn(input.email)': { harmless: memberToken },
  'Mutation.signIn(input.password)': { harmless: memberToken },
  'Mutation.signIn(input.code)': { harmless: memberToken },
  'Mutation.signIn(input.merchantId)': { harmless: memberToken },
  'Mutation.acceptInvitation(input.token)': { harmless: memberToken },
  'Mutation.acceptInvitation(input.name)': { harmless: memberToken },
  'Mutation.acceptInvitation(input.password)': { harmless: memberToken },
  'Mutation.sandboxSignIn(input.token)': { harmless: memberToken },
  'Mutation.requestPasswordReset(input.email)': { harmless: 'the same answer to everybody' },
  'Mutation.requestPasswordReset(input.merchantId)': { harmless: 'the same answer to everybody' },
  'Mutation.resetPassword(input.token)': { harmless: memberToken },
  'Mutation.resetPassword(input.password)': { harmless: memberToken },
  'Mutation.changePassword(current)': { harmless: memberToken },
  'Mutation.changePassword(password)': { harmless: memberToken },
  'Mutation.startTotp(password)': { harmless: memberToken },
  'Mutation.confirmTotp(code)': { harmless: memberToken },
  'Mutation.disableTotp(password)': { harmless: memberToken },
  'Mutation.disableTotp(code)': { harmless: memberToken },

  'POST /team/invite input.name': { harmless: text },
  'POST /team/invite input.email': {
    isWrite: true,
    attack: ({ memberEmail }) => rest('POST', '/team/invite', { name: 'Stranger', email: memberEmail }),
  },
  'GET /team limit': { harmless: number },
  'GET /team offset': { harmless: number },
  'GET /team/{id} id': { attack: get(({ memberId }) => `/team/${memberId}`) },
  'PUT /team/{id}/role id': {
    attack: ({ memberId }) => rest('PUT', `/team/${memberId}/role`, { role: 'admin' }),
  },
  'DELETE /team/{id} keepKeys': {
    attack: ({ keyId }, { memberId }) => ({
      method: 'DELETE',
      path: `/team/${memberId}`,
      body: { keep_keys: [Number(keyId)] },
    }),
    byPerson: true,
  },
  'DELETE /team/{id} id': { attack: ({ memberId }) => ({ method: 'DELETE', path: `/team/${memberId}` }) },

  'nothing: a member by its global id': {
    attack: graphql(one, ({ memberNode }) => ({ id: memberNode })),
  },
  'nothing: a member as a node': {
    attack: graphql(
      `query ($id: ID!) { node(id: $id) { id ... on TeamMember ${record} } }`,
      ({ memberNode }) => ({ id: memberNode }),
    ),
  },
  'nothing: a member by its global id, to remove it': {
    attack: graphql(changed('removeMember', ''), ({ memberNode }) => ({ id: memberNode })),
  },
  'nothing: the team': { attack: graphql(`{ members { totalCount nodes ${record} } }`, () => ({})) },
  'nothing: the team in REST': { attack: get(() => '/team') },
}

type Colleague = Pick<KnownRows, 'memberId' | 'memberNode' | 'memberCursor' | 'memberEmail' | 'sessionId'>

/** Makes a signed-in member of a merchant's team. @returns all names of the member */
export async function colleagueOf(service: TestApp, shop: TestMerchant, name: string): Promise<Colleague> {
  const { access } = service.app.services
  const member = await makeMember(access, shop.merchantId, 'viewer', `fanta-${name}`)
  const document = '{ members { edges { cursor node { id databaseId email } } } }'
  const { body } = await service.graphql(document, {}, shop.token)
  const [{ cursor, node }] = body['data'].members.edges
  return {
    memberId: String(node.databaseId),
    memberNode: node.id,
    memberCursor: cursor,
    memberEmail: node.email,
    sessionId: String(member.sessionId),
  }
}

/** The same names, of no member. @param renamed replaces an id within a name */
export function nobodyLike(
  known: KnownRows,
  member: string,
  session: string,
  renamed: (name: string, was: string, becomes: string) => string,
): Colleague {
  return {
    memberId: member,
    memberNode: renamed(known.memberNode, known.memberId, member),
    memberCursor: member,
    memberEmail: 'nobody@shop.test',
    sessionId: session,
  }
}
