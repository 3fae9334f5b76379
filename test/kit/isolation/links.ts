import type { TestApp } from '../app.ts'
import { type IsolationRequest, get, graphql, type KnownRows, type OwnedRow } from './asks.ts'

// The rows of the isolation matrix about payment links.

const record = '{ id databaseId title urlSlug url usageCount createdAt }'
const page = `{ nodes ${record} pageInfo { startCursor endCursor } }`
const one = `query ($id: ID!) { paymentLink(id: $id) ${record} }`
const changed = `mutation ($id: ID!) { updatePaymentLink(id: $id, input: { title: "Taken" }) { __typename
  ... on PaymentLink ${record} ... on Refusal { code message } } }`
const paged = (how: string) => graphql(`query ($c: String) { paymentLinks(${how}: $c) ${page} }`, cursorOf)
const cursorOf = ({ linkCursor }: KnownRows) => ({ c: linkCursor })
const paid = (how: string) => `query ($id: ID!, $c: String) { paymentLink(id: $id) {
  payments(${how}: $c) { totalCount nodes { databaseId } } } }`
const used = `subscription ($after: String, $id: ID) { paymentLinkUsed(after: $after, id: $id) {
  sequence reference amount paymentLink { title } transaction { customerPhone } } }`
const payments = `query ($id: ID!) { transactions(filter: { paymentLink: $id }) {
  totalCount totalAmount nodes { databaseId reference } } }`
const put = (id: string): IsolationRequest => ({
  method: 'PUT',
  path: `/payment-links/${id}`,
  body: { title: 'Taken' },
})

const text = 'is text of the caller'
const number = 'counts rows of the caller'
const uses = 'is a number of the caller'
const publicName = 'is the name of a page that everybody may open; one of each in the whole service'

export const linkRows: Readonly<Record<string, OwnedRow>> = {
  'Query.paymentLink(id)': { attack: graphql(one, ({ linkId }) => ({ id: linkId })) },
  'Query.paymentLinks(after)': { attack: paged('first: 50, after') },
  'Query.paymentLinks(before)': { attack: paged('last: 50, before') },
  'Query.paymentLinks(first)': { harmless: number },
  'Query.paymentLinks(last)': { harmless: number },
  'Query.paymentLinks(offset)': { harmless: number },
  'PaymentLink.payments(first)': { harmless: number },
  'PaymentLink.payments(after)': {
    attack: graphql(paid('first: 50, after'), ({ id }, own) => ({ id: own.linkId, c: id })),
  },
  'PaymentLink.payments(last)': { harmless: number },
  'PaymentLink.payments(before)': {
    attack: graphql(paid('last: 50, before'), ({ id }, own) => ({ id: own.linkId, c: id })),
  },
  'Subscription.paymentLinkUsed(after)': {
    attack: ({ sequence }) => ({ document: used, variables: { after: sequence }, isStream: true }),
  },
  'Subscription.paymentLinkUsed(id)': {
    attack: ({ linkId }) => ({ document: used, variables: { id: linkId, after: '0' }, isStream: true }),
  },
  'Mutation.createPaymentLink(input.title)': { harmless: text },
  'Mutation.createPaymentLink(input.description)': { harmless: text },
  'Mutation.createPaymentLink(input.urlSlug)': { harmless: publicName },
  'Mutation.createPaymentLink(input.usageLimit)': { harmless: uses },
  'Mutation.updatePaymentLink(id)': { attack: graphql(changed, ({ linkId }) => ({ id: linkId })) },
  'Mutation.updatePaymentLink(input.title)': { harmless: text },
  'Mutation.updatePaymentLink(input.description)': { harmless: text },
  'Mutation.updatePaymentLink(input.usageLimit)': { harmless: uses },

  'POST /payment-links input.title': { harmless: text },
  'POST /payment-links input.description': { harmless: text },
  'POST /payment-links input.urlSlug': { harmless: publicName },
  'POST /payment-links input.usageLimit': { harmless: uses },
  'GET /payment-links limit': { harmless: number },
  'GET /payment-links offset': { harmless: number },
  'GET /payment-links/{id} id': { attack: get(({ linkId }) => `/payment-links/${linkId}`) },
  'PUT /payment-links/{id} id': { attack: ({ linkId }) => put(linkId) },
  'PUT /payment-links/{id} input.title': { harmless: text },
  'PUT /payment-links/{id} input.description': { harmless: text },
  'PUT /payment-links/{id} input.usageLimit': { harmless: uses },

  'nothing: a link by its global id': { attack: graphql(one, ({ linkNode }) => ({ id: linkNode })) },
  'nothing: a link by its global id, to change it': {
    attack: graphql(changed, ({ linkNode }) => ({ id: linkNode })),
  },
  'nothing: a link as a node': {
    attack: graphql(
      `query ($id: ID!) { node(id: $id) { id ... on PaymentLink ${record} } }`,
      ({ linkNode }) => ({
        id: linkNode,
      }),
    ),
  },
  'nothing: the links': {
    attack: graphql(
      `{ paymentLinks(filter: { activeOnly: false }) { totalCount nodes ${record} } }`,
      () => ({}),
    ),
  },
  'Query.transactions(filter.paymentLink)': { attack: graphql(payments, ({ linkId }) => ({ id: linkId })) },
  'nothing: the payments by a link, by its global id': {
    attack: graphql(payments, ({ linkNode }) => ({ id: linkNode })),
  },
  'GET /transactions filter.paymentLink': {
    attack: get(({ linkId }) => `/transactions?payment_link=${linkId}`),
  },
  'Query.paymentLinks(filter.search)': {
    attack: graphql(
      `{ paymentLinks(filter: { activeOnly: false, search: "Link of" }) { totalCount nodes ${record} } }`,
      () => ({}),
    ),
  },
  'GET /payment-links filter.search': { attack: get(() => '/payment-links?limit=50&search=Link%20of') },
  'nothing: the links in REST': { attack: get(() => '/payment-links?limit=50') },
}

type Link = Pick<KnownRows, 'linkId' | 'linkNode' | 'linkCursor'>

/** Makes a link with one payment, which failed. */
export async function linkOf(service: TestApp, token: string, name: string): Promise<Link> {
  const body = { title: `Link of ${name}`, amount: 5_000 }
  await service.rest('POST', '/payment-links', { token, body })
  await service.database.owner.query(
    `INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
       reference, request_data, payment_link_id, created_at)
     SELECT merchant_id, 'pay', 'OperatorA', '+22370000002', amount, 'failed', 'paid-' || $1, '{}', id,
       created_at
     FROM payment_link WHERE title = $2`,
    [name, body.title],
  )
  const read = await service.graphql(
    '{ paymentLinks { edges { cursor node { id databaseId } } } }',
    {},
    token,
  )
  const [edge] = read.body['data'].paymentLinks.edges
  return { linkId: String(edge.node.databaseId), linkNode: edge.node.id, linkCursor: edge.cursor }
}

/** The same names, of no link. @param renamed replaces an id within a name */
export function noLinkLike(
  known: KnownRows,
  id: string,
  renamed: (name: string, was: string, becomes: string) => string,
): Link {
  return {
    linkId: id,
    linkNode: renamed(known.linkNode, known.linkId, id),
    linkCursor: id,
  }
}
