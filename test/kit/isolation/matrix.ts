import {
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  Kind,
  typeFromAST,
} from 'graphql'
import { restDocument } from '../../../src/http/rest/documents.ts'
import { routes } from '../../../src/http/rest/routes.ts'
import { type IsolationRequest, get, graphql, type OwnedRow } from './asks.ts'
import { auditLogRows } from './audit-log.ts'
import { apiKeyRows } from './api-keys.ts'
import { batchRows } from './batches.ts'
import { beneficiaryRows } from './beneficiaries.ts'
import { linkRows } from './links.ts'
import { moneyOutRows } from './money-out.ts'
import { payoutRows } from './payouts.ts'
import { settingsRows } from './settings.ts'
import { webhookRows } from './webhooks.ts'
import { teamRows } from './team.ts'

// Every input by which a caller can name a thing, from the schema and the table of REST routes, each with the
// attack of a stranger. An input without a row here fails the test.

/** Types that name no row by their values. */
const nameless = new Set(['Amount', 'Boolean', 'DateTime', 'Duration', 'Float'])

function leavesOf(type: GraphQLInputType, path: string): string[] {
  const named = getNamedType(type)
  if (isInputObjectType(named)) {
    return Object.values(named.getFields()).flatMap((field) => leavesOf(field.type, `${path}.${field.name}`))
  }
  return isEnumType(named) || nameless.has(named.name) ? [] : [path]
}

/** Lists the inputs of the schema: `Query.transactions(filter.reference)` and so on. */
export function graphqlInputs(schema: GraphQLSchema): string[] {
  return Object.values(schema.getTypeMap())
    .filter((type) => (isObjectType(type) || isInterfaceType(type)) && !type.name.startsWith('__'))
    .flatMap((type) =>
      isObjectType(type) || isInterfaceType(type)
        ? Object.values(type.getFields()).flatMap((field) =>
            field.args
              .flatMap((arg) => leavesOf(arg.type, arg.name))
              .map((path) => `${type.name}.${field.name}(${path})`),
          )
        : [],
    )
}

/**
 * Lists the inputs of REST, `GET /transactions/{id} id` and so on: path parameters, and variables of the
 * operation.
 */
export function restInputs(schema: GraphQLSchema): string[] {
  const operations = restDocument().definitions.filter(
    (definition) => definition.kind === Kind.OPERATION_DEFINITION,
  )
  return routes.flatMap(({ method, path, operation }) => {
    const variables = operations.find(({ name }) => name?.value === operation)?.variableDefinitions ?? []
    const leaves = variables.flatMap((variable) => {
      const type = typeFromAST(schema, variable.type)
      return type ? leavesOf(type as GraphQLInputType, variable.variable.name.value) : []
    })
    const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => String(name))
    return [...new Set([...parameters, ...leaves])].map((name) => `${method} ${path} ${name}`)
  })
}

const list = '{ totalCount nodes { id databaseId reference amount customerPhone } }'
const page = '{ nodes { id reference amount customerPhone } pageInfo { startCursor endCursor } }'
const record = '{ id databaseId reference amount customerPhone requestData responseData }'

const collected = (input: Record<string, unknown>): IsolationRequest => ({
  document: `mutation ($input: CollectPaymentInput!) { collectPayment(input: $input) { __typename
    ... on PaymentInitiation { status amount transaction { amount customerPhone } }
    ... on Refusal { code message }
    ... on DuplicateReferenceError { existingTransaction { databaseId } } } }`,
  variables: {
    input: { amount: 600, customerPhone: '70110000', paymentMethod: 'OperatorA', ...input },
  },
})
const signedIn = (input: object): IsolationRequest => ({
  document: `mutation ($input: AuthenticateInput!) { authenticate(input: $input) { __typename
    ... on AccessToken { token } ... on Refusal { code message } } }`,
  variables: { input },
})
const pay = (body: object, headers: Record<string, string> = {}): IsolationRequest => ({
  method: 'POST',
  path: '/pay',
  headers,
  body: { amount: 600, customer_phone: '70110000', payment_method: 'OperatorA', ...body },
})
const auth = (key: string, secret: string): IsolationRequest => ({
  method: 'POST',
  path: '/auth',
  headers: { 'X-API-Key': key, 'X-API-Secret': secret },
})
const followed = (variables: object, headers: Record<string, string> = {}): IsolationRequest => ({
  document: `subscription ($after: String, $id: ID, $reference: String) {
    transactionChanged(after: $after, id: $id, reference: $reference) {
      sequence reference amount transaction { customerPhone } } }`,
  variables,
  headers,
  isStream: true,
})

const statement = (lines: string) => `query ($c: String) { statement(from: "2020-01-01T00:00:00Z") {
  opening { balance } closing { balance } totalIn totalOut
  lines(${lines}) { nodes { entry { amount step } availableChange balanceAfter { available } reference
    counterparty { name phone } subject { ... on Transaction { reference } ... on Payout { reference }
      ... on Batch { title } ... on BatchRecipient { name account } } } } } }`

const harmlessText = 'is passed to the operator and kept with the payment'
const number = 'counts rows of the caller'
const payerAsks =
  'query ($r: String!, $m: Int) { paymentStatus(reference: $r, merchantId: $m) { state message } }'

export const matrix: Readonly<Record<string, OwnedRow>> = {
  'Query.node(id)': {
    attack: graphql(`query ($id: ID!) { node(id: $id) { id ... on Transaction ${record} } }`, ({ node }) => ({
      id: node,
    })),
  },
  'Query.nodes(ids)': {
    attack: graphql(
      `query ($id: ID!) { nodes(ids: [$id]) { id ... on Transaction ${record} } }`,
      ({ node }) => ({ id: node }),
    ),
  },
  'Query.transaction(id)': {
    attack: graphql(`query ($id: ID) { transaction(id: $id) ${record} }`, ({ node }) => ({ id: node })),
  },
  'Query.transaction(databaseId)': {
    attack: graphql(`query ($id: SafeInt) { transaction(databaseId: $id) ${record} }`, ({ id }) => ({
      id: Number(id),
    })),
  },
  'Query.transaction(reference)': {
    attack: graphql(`query ($r: String) { transaction(reference: $r) ${record} }`, ({ reference }) => ({
      r: reference,
    })),
  },
  'Query.transaction(by.id)': {
    attack: graphql(`query ($id: ID!) { transaction(by: { id: $id }) ${record} }`, ({ node }) => ({
      id: node,
    })),
  },
  'Query.transaction(by.reference)': {
    attack: graphql(
      `query ($r: String!) { transaction(by: { reference: $r }) ${record} }`,
      ({ reference }) => ({ r: reference }),
    ),
  },
  'Query.transactions(after)': {
    attack: graphql(`query ($c: String) { transactions(first: 50, after: $c) ${page} }`, ({ cursor }) => ({
      c: cursor,
    })),
  },
  'Query.transactions(before)': {
    attack: graphql(`query ($c: String) { transactions(last: 50, before: $c) ${page} }`, ({ cursor }) => ({
      c: cursor,
    })),
  },
  'Query.transactions(first)': { harmless: number },
  'Query.transactions(last)': { harmless: number },
  'Query.transactions(offset)': { harmless: number },
  'Query.transactions(filter.reference)': {
    attack: graphql(
      `query ($r: String) { transactions(filter: { reference: $r }) ${list} }`,
      ({ reference }) => ({ r: reference }),
    ),
  },
  'Query.transactions(filter.customerPhone)': {
    attack: graphql(
      `query ($p: String) { transactions(filter: { customerPhone: $p }) ${list} }`,
      ({ phone }) => ({ p: phone }),
    ),
  },
  'Query.transactions(filter.search)': {
    attack: graphql(
      `query ($s: String) { transactions(filter: { search: $s }) { totalCount totalAmount ${page.slice(1)} }`,
      ({ reference }) => ({ s: reference.slice(0, 6) }),
    ),
  },
  'Query.paymentStatus(reference)': {
    isCredential: true,
    attack: graphql(payerAsks, ({ reference }) => ({ r: reference })),
  },
  'Query.paymentStatus(merchantId)': {
    isCredential: true,
    attack: graphql(payerAsks, ({ reference, merchantId }) => ({ r: reference, m: merchantId })),
  },
  'Mutation.authenticate(input.apiKey)': {
    attack: ({ apiKey }, own) => signedIn({ apiKey, apiSecret: own.apiSecret }),
  },
  'Mutation.authenticate(input.apiSecret)': {
    attack: ({ apiSecret }, own) => signedIn({ apiKey: own.apiKey, apiSecret }),
  },
  'Mutation.authenticate(input.scopes)': { harmless: 'are words of ours' },
  'Mutation.authenticate(input.limits.addresses)': { harmless: 'are addresses of computers' },
  'Mutation.collectPayment(input.reference)': {
    isWrite: true,
    attack: ({ reference }) => collected({ reference }),
  },
  'Mutation.collectPayment(input.customerPhone)': {
    isWrite: true,
    attack: ({ phone }) => collected({ customerPhone: phone }),
  },
  'Mutation.collectPayment(input.customerEmail)': { harmless: harmlessText },
  'Mutation.collectPayment(input.description)': { harmless: harmlessText },
  'Mutation.collectPayment(input.returnUrl)': { harmless: harmlessText },
  'Mutation.collectPayment(input.cancelUrl)': { harmless: harmlessText },
  'Subscription.transactionChanged(after)': { attack: ({ sequence }) => followed({ after: sequence }) },
  'Subscription.transactionChanged(id)': { attack: ({ id }) => followed({ id, after: '0' }) },
  'Subscription.transactionChanged(reference)': {
    attack: ({ reference }) => followed({ reference, after: '0' }),
  },

  'POST /auth input.apiKey': { attack: ({ apiKey }, own) => auth(apiKey, own.apiSecret) },
  'POST /auth input.apiSecret': { attack: ({ apiSecret }, own) => auth(own.apiKey, apiSecret) },
  'POST /auth input.scopes': { harmless: 'are words of ours' },
  'POST /auth input.limits.addresses': { harmless: 'are addresses of computers' },
  'GET /payment/status/{reference} reference': {
    isCredential: true,
    attack: get(({ reference }) => `/payment/status/${reference}`),
  },
  'GET /payment/status/{reference} merchantId': {
    isCredential: true,
    attack: get(({ reference, merchantId }) => `/payment/status/${reference}?merchant_id=${merchantId}`),
  },
  'POST /pay input.reference': { isWrite: true, attack: ({ reference }) => pay({ reference }) },
  'POST /pay input.customerPhone': { isWrite: true, attack: ({ phone }) => pay({ customer_phone: phone }) },
  'POST /pay input.customerEmail': { harmless: harmlessText },
  'POST /pay input.description': { harmless: harmlessText },
  'POST /pay input.returnUrl': { harmless: harmlessText },
  'POST /pay input.cancelUrl': { harmless: harmlessText },
  'GET /transactions limit': { harmless: number },
  'GET /transactions offset': { harmless: number },
  'GET /transactions filter.reference': {
    attack: get(({ reference }) => `/transactions?reference=${reference}`),
  },
  'GET /transactions filter.customerPhone': {
    attack: get(({ phone }) => `/transactions?customer_phone=${encodeURIComponent(phone)}`),
  },
  'GET /transactions filter.search': {
    attack: get(({ phone }) => `/transactions?search=${encodeURIComponent(phone)}`),
  },
  'GET /transactions/{id} id': { attack: get(({ id }) => `/transactions/${id}`) },

  ...beneficiaryRows,
  'Statement.lines(first)': { harmless: number },
  'Statement.lines(after)': {
    attack: graphql(statement('after: $c'), ({ line }) => ({ c: line })),
  },
  ...moneyOutRows,
  ...payoutRows,
  ...batchRows,
  ...linkRows,
  ...webhookRows,
  ...teamRows,
  ...settingsRows,
  ...apiKeyRows,
  ...auditLogRows,

  // Headers are in neither list.
  'header Idempotency-Key': {
    isWrite: true,
    attack: ({ idempotencyKey, body }) => pay(body, { 'Idempotency-Key': idempotencyKey }),
  },
  'header Last-Event-ID': { attack: ({ sequence }) => followed({}, { 'Last-Event-ID': sequence }) },

  // Requests without a name must not show another merchant's rows either.
  'nothing: the balance': { attack: graphql('{ balance { balance available reserved } }', () => ({})) },
  'nothing: the statement': { attack: graphql(statement('first: 50, after: $c'), () => ({})) },
  'nothing: the position of the log': { attack: graphql('{ asOfSequence }', () => ({})) },
  'nothing: the balance of a moment': {
    attack: graphql('{ balance(at: "2100-01-01T00:00:00Z") { balance available } }', () => ({})),
  },
  'nothing: ledger entries': {
    attack: graphql('{ transactions(first: 50) { nodes { ledgerEntries { amount step } } } }', () => ({})),
  },
  'nothing: the caller': { attack: graphql('{ me { merchant { databaseId name } } }', () => ({})) },
  'nothing: the list': { attack: graphql(`{ transactions ${list} }`, () => ({})) },
  'nothing: a list by kind': {
    attack: graphql(`{ transactions(filter: { status: SUCCESS }) ${list} }`, () => ({})),
  },
  'nothing: a deep page': { attack: graphql(`{ transactions(offset: 1, first: 50) ${list} }`, () => ({})) },
  'nothing: the list in REST': { attack: get(() => '/transactions?limit=50') },
  'nothing: the balance in REST': { attack: get(() => '/balance') },
  'nothing: the export of transactions': { attack: get(() => '/exports/transactions.csv') },
  'nothing: an export with a search': {
    attack: get(({ reference }) => `/exports/transactions.csv?search=${reference}`),
  },
  'nothing: the largest transactions': {
    attack: graphql(`{ transactions(orderBy: AMOUNT_DESC, after: "999999999-1") ${list} }`, () => ({})),
  },
  'nothing: the export of payouts': { attack: get(() => '/exports/payouts.csv') },
  'nothing: the export of the statement': { attack: get(() => '/exports/statement.csv?from=2020-01-01') },
  'nothing: the whole log': { attack: () => followed({ after: '0' }) },
}
