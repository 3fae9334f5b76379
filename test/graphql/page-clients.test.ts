import { ApolloClient, gql, HttpLink, InMemoryCache, Observable } from '@apollo/client'
import { GraphQLWsLink } from '@apollo/client/link/subscriptions'
import { ApolloLink } from '@apollo/client/link'
import { createClient } from 'graphql-ws'
import { print } from 'graphql'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { claimBounds } from '../../src/requests/store.ts'
import { jobBounds } from '../../src/resources/jobs.ts'
import { openLimits, startTestApp, type TestApp } from '../kit/app.ts'
import {
  type DashboardShop,
  openDashboardShop,
  openReceiver,
  type PageName,
  pageNames,
  queryOf,
  variablesOf,
} from '../kit/dashboard-pages.ts'
import {
  type OpenClient,
  only,
  openApollo,
  openRelay,
  openUrql,
  type PageClient,
  possibleTypes,
} from '../kit/page-clients.ts'
import { useBounds } from '../kit/use-bounds.ts'

// The pages of a dashboard, read by clients that keep what they read in a normalised cache.

useBounds(claimBounds, { operatorQueryIntervalMs: 100 })
useBounds(jobBounds, { resolveEveryMs: 200, payoutsDueEveryMs: 200 })

/** Answers have every shape: each test knows the one that it expects. */
type Json = ReturnType<typeof JSON.parse>

let service: TestApp
let receiver: Awaited<ReturnType<typeof openReceiver>>
let shop: DashboardShop
let variables: Record<PageName, Record<string, unknown>>
beforeAll(async () => {
  service = await startTestApp(openLimits)
  receiver = await openReceiver()
  shop = await openDashboardShop(service, receiver.url, 5)
  const pages = variablesOf(shop)
  // A statement without an end is another one at each moment.
  variables = { ...pages, statement: { ...pages.statement, to: new Date().toISOString() } }
})
afterAll(async () => {
  await service.close()
  receiver.close()
})

/** A `fetch` as the owner of the shop, which keeps the answers. */
function recorded() {
  const answers: Json[] = []
  const ask: typeof fetch = async (address, init) => {
    const headers = new Headers(init?.headers)
    headers.set('Authorization', `Bearer ${shop.owner.token}`)
    const response = await fetch(address, { ...init, headers })
    answers.push(await response.clone().json())
    return response
  }
  return { answers, ask }
}

/** An answer without the fields that a client asks for itself. */
function withoutOwnFields(data: unknown): Json {
  return JSON.parse(JSON.stringify(data, (key, value: unknown) => (key.startsWith('__') ? undefined : value)))
}

/** The entities that the pages show, by their types and ids. */
async function entitiesShown(): Promise<string[]> {
  const found = new Set<string>()
  const look = (value: Json): void => {
    if (value === null || typeof value !== 'object') return
    const { __typename: type, id } = value
    if (type && id) found.add(`${type}:${id}`)
    for (const each of Object.values(value)) look(each)
  }
  for (const page of pageNames) {
    const document = print(only(page, queryOf(page))).replaceAll(/\{(?=\n)/g, '{ __typename')
    const { body } = await service.graphql(document, variables[page], shop.owner.token)
    expect(body.errors).toBeUndefined()
    look(body.data)
  }
  return [...found].toSorted()
}

const clients: readonly (readonly [name: string, open: OpenClient, payout: string])[] = [
  ['Apollo Client', openApollo, 'cement-1'],
  ['urql with Graphcache', openUrql, 'cement-2'],
  ['Relay', openRelay, 'cement-3'],
]

describe.each(clients)('%s', (_name, open, reference) => {
  const { answers, ask } = recorded()
  let client: PageClient
  beforeAll(async () => {
    client = await open(`${service.url}/graphql`, ask)
  })
  const waits = async (): Promise<Json> => {
    const { approvalsWaiting } = (await client.read('approvals', variables.approvals)) as Json
    return approvalsWaiting.nodes.find((node: Json) => node.reference === reference)
  }

  test('shows of each page all that the service answers, in one request', async () => {
    for (const [index, page] of pageNames.entries()) {
      const data = await client.read(page, variables[page])
      expect(answers).toHaveLength(index + 1)
      expect(answers[index].errors).toBeUndefined()
      expect(withoutOwnFields(data)).toEqual(withoutOwnFields(answers[index].data))
    }
  })

  test('keeps one entry for each entity of all pages', async () => {
    const shown = await entitiesShown()
    expect(shown.length).toBeGreaterThan(80)
    expect(client.entities().toSorted()).toEqual(shown)
  })

  test('finds every page in its cache, which no other page has damaged', async () => {
    const before = answers.length
    for (const [index, page] of pageNames.entries()) {
      const data = await client.read(page, variables[page])
      expect(withoutOwnFields(data)).toEqual(withoutOwnFields(answers[index].data))
    }
    expect(answers).toHaveLength(before)
  })

  test('shows a change on a cached page without asking for the page again, and then a refusal', async () => {
    const { id, approval } = await waits()
    expect(approval).toMatchObject({ status: 'PENDING', canApprove: true, approvedBy: [] })
    const request = { id, digest: approval.digest }
    await client.change('approvals', request)
    const before = answers.length
    const by = [{ counts: true, member: { name: `awa-${shop.rows}` } }]
    expect((await waits()).approval).toMatchObject({ status: 'APPROVED', canApprove: false, approvedBy: by })
    expect(answers).toHaveLength(before)

    const { approvePayout } = (await client.change('approvals', request)) as Json
    expect(approvePayout).toMatchObject({ __typename: 'StateConflictError', code: 'STATE_CONFLICT' })
    expect(approvePayout.message).toMatch(/^[A-Z].+\.$/)
  })
})

test('Apollo Client without the possible types drops a refusal, so it needs them', async () => {
  const { answers, ask } = recorded()
  const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
  onTestFinished(() => warned.mockRestore())
  const client = openApollo(`${service.url}/graphql`, ask, {})
  const { approvePayout } = (await client.change('approvals', { id: '0', digest: '0'.repeat(64) })) as Json
  expect(answers[0].data.approvePayout.code).toBe('NOT_FOUND')
  expect(approvePayout).toEqual({ __typename: 'NotFoundError' })
})

test('a page and the subscription from its position miss nothing between them', async () => {
  const { answers, ask } = recorded()
  const authorization = `Bearer ${shop.owner.token}`
  const socket = createClient({
    url: `${service.url.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { authorization },
  })
  const checkpoints: unknown[] = []
  const link = ApolloLink.split(
    ({ operationType }) => operationType === 'subscription',
    // As in the guide: only links see a checkpoint.
    new ApolloLink((operation, forward) => {
      const results = forward(operation)
      return new Observable((observer) =>
        results.subscribe({
          next(result) {
            if (result.extensions) checkpoints.push(result.extensions['checkpoint'])
            observer.next(result)
          },
          error: (error) => observer.error(error),
          complete: () => observer.complete(),
        }),
      )
    }).concat(new GraphQLWsLink(socket)),
    new HttpLink({ uri: `${service.url}/graphql`, fetch: ask }),
  )
  const client = new ApolloClient({ link, cache: new InMemoryCache({ possibleTypes }) })
  const page = { query: only('live-payment', 'LivePaymentQuery'), variables: { reference: 'sale-1' } }
  const { data } = await client.query<Json>(page)
  expect(data.transaction).toMatchObject({ status: 'SUCCESS' })

  // The payment is refunded before the client follows it.
  const refund = gql`mutation ($id: ID!) { refundTransaction(id: $id) { __typename } }`
  await service.graphql(print(refund), { id: data.transaction.id }, shop.owner.token)
  const told = Promise.withResolvers<Json>()
  const following = client
    .subscribe<Json>({
      query: only('live-payment', 'LivePaymentSubscription'),
      variables: { id: data.transaction.id, after: String(data.asOfSequence) },
    })
    .subscribe({
      next: ({ data: change }) => {
        if (change.transactionChanged.type === 'PAYMENT_REVERSED') told.resolve(change.transactionChanged)
      },
      error: (error: unknown) => told.reject(error),
    })
  expect(await told.promise).toMatchObject({ status: 'REVERSED', transaction: { id: data.transaction.id } })
  const cached = client.readQuery<Json>(page)
  expect(cached.transaction).toMatchObject({ status: 'REVERSED' })
  expect(answers).toHaveLength(1)
  expect(checkpoints).toEqual([String(data.asOfSequence)])
  following.unsubscribe()
  client.stop()
  await socket.dispose()
})
