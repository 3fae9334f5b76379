import { ApolloClient, gql, HttpLink, InMemoryCache } from '@apollo/client'
import { GraphQLWsLink } from '@apollo/client/link/subscriptions'
import { Client, fetchExchange } from '@urql/core'
import { createClient as createSseClient } from 'graphql-sse'
import { createClient as createWsClient } from 'graphql-ws'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'

let service: TestApp
let shop: TestMerchant
beforeAll(async () => {
  service = await startTestApp()
  shop = await service.merchant()
})
afterAll(() => service.close())

const collect = `mutation Collect($input: CollectPaymentInput!) {
  collectPayment(input: $input) {
    __typename
    ... on PaymentInitiation { databaseId status reference transaction { id amount } }
    ... on DuplicateReferenceError { code existingTransaction { databaseId status } }
    ... on Refusal { message }
  }
}`
const list = 'query List { transactions(first: 5) { totalCount nodes { id reference status } } }'
const follow =
  'subscription Follow($after: String) { transactionChanged(after: $after) { sequence status reference } }'
const input = (reference: string) => ({
  amount: 5000,
  customerPhone: '70000000',
  paymentMethod: 'OperatorA',
  reference,
})

interface Change {
  transactionChanged: { sequence: number; status: string; reference: string }
}

test('urql collects, reads the typed duplicate, and lists', async () => {
  const client = new Client({
    url: `${service.url}/graphql`,
    exchanges: [fetchExchange],
    preferGetMethod: false,
    fetchOptions: { headers: { Authorization: `Bearer ${shop.token}` } },
  })
  const made = await client.mutation(collect, { input: input('urql-1') }).toPromise()
  expect(made.error).toBeUndefined()
  expect(made.data.collectPayment).toMatchObject({ __typename: 'PaymentInitiation', status: 'PENDING' })
  const again = await client.mutation(collect, { input: input('urql-1') }).toPromise()
  expect(again.data.collectPayment).toMatchObject({
    __typename: 'DuplicateReferenceError',
    code: 'DUPLICATE_REFERENCE',
    existingTransaction: { databaseId: made.data.collectPayment.databaseId },
  })
  const listed = await client.query(list, {}).toPromise()
  expect(listed.data.transactions.nodes.map((node: { reference: string }) => node.reference)).toContain(
    'urql-1',
  )
})

test('Apollo Client lists over HTTP and follows over its WebSocket link', async () => {
  const socket = createWsClient({
    url: `${service.url.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${shop.token}` },
  })
  const http = new HttpLink({
    uri: `${service.url}/graphql`,
    headers: { Authorization: `Bearer ${shop.token}` },
  })
  const reader = new ApolloClient({ link: http, cache: new InMemoryCache() })
  const { data } = await reader.query<{ transactions: { totalCount: number } }>({ query: gql(list) })
  expect(data?.transactions.totalCount).toBeGreaterThanOrEqual(0)

  const follower = new ApolloClient({ link: new GraphQLWsLink(socket), cache: new InMemoryCache() })
  const paid = new Promise<Change['transactionChanged']>((resolve, reject) => {
    follower.subscribe<Change>({ query: gql(follow), variables: { after: '0' } }).subscribe({
      next: ({ data: change }) => {
        const changed = change?.transactionChanged
        if (changed?.reference === 'apollo-1' && changed.status === 'SUCCESS') resolve(changed)
      },
      error: reject,
    })
  })
  await service.graphql(collect, { input: input('apollo-1') }, shop.token)
  expect(await paid).toMatchObject({ status: 'SUCCESS', reference: 'apollo-1' })
  follower.stop()
  await socket.dispose()
})

test('graphql-sse resumes at its cursor and gets the missed events, once and in order', async () => {
  const client = createSseClient({
    url: `${service.url}/graphql`,
    headers: { Authorization: `Bearer ${shop.token}` },
  })
  await service.graphql(collect, { input: input('sse-1') }, shop.token)
  const first = client.iterate<Change>({ query: follow, variables: { after: '0' } })
  const { value } = await first.next()
  expect(value?.data?.transactionChanged.sequence).toBe(1)
  await first.return?.()

  await service.graphql(collect, { input: input('sse-2') }, shop.token)
  const sequences: number[] = []
  for await (const result of client.iterate<Change>({ query: follow, variables: { after: '1' } })) {
    const change = result.data?.transactionChanged
    if (change) sequences.push(change.sequence)
    if (change?.reference === 'sse-2' && change.status === 'SUCCESS') break
  }
  expect(sequences).toEqual(sequences.map((_sequence, place) => place + 2))
  client.dispose()
})
