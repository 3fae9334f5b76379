import { serverAudits } from 'graphql-http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestApp, type TestApp, type TestMerchant } from '../support/app.ts'

let service: TestApp
let shop: TestMerchant
let stranger: TestMerchant
let payment: { id: string; databaseId: number; reference: string }
beforeAll(async () => {
  service = await startTestApp()
  ;[shop, stranger] = [await service.merchant('Shop'), await service.merchant('Stranger')]
  const made = await service.rest('POST', '/pay', {
    token: shop.token,
    body: { amount: 5000, customer_phone: '70110000', payment_method: 'OperatorA', reference: 'mine' },
  })
  const databaseId = made.body.data.transaction_id
  const read = await service.graphql(`{ transaction(databaseId: ${databaseId}) { id } }`, {}, shop.token)
  payment = { id: read.body.data.transaction.id, databaseId, reference: 'mine' }
})
afterAll(() => service.close())

describe("another merchant's payment does not exist", () => {
  /** Each way to ask for it, and what there is to see for its owner. */
  const ways: readonly [string, () => string, (data: unknown) => unknown][] = [
    ['node', () => `node(id: "${payment.id}")`, (node) => node],
    ['nodes', () => `nodes(ids: ["${payment.id}"])`, (nodes) => (nodes as unknown[])[0]],
    ['transaction by id', () => `transaction(databaseId: ${payment.databaseId})`, (found) => found],
    ['transaction by reference', () => `transaction(reference: "${payment.reference}")`, (found) => found],
  ]

  test.each(ways)('%s', async (_name, field, found) => {
    const document = () => `{ answer: ${field()} { id } }`
    const own = await service.graphql(document(), {}, shop.token)
    expect(found(own.body.data.answer)).toEqual({ id: payment.id })
    const foreign = await service.graphql(document(), {}, stranger.token)
    expect(found(foreign.body.data.answer)).toBeNull()
    expect(foreign.body.errors).toBeUndefined()
  })

  test('nor in lists and counts, whatever the filter or the cursor', async () => {
    const page = await service.graphql('{ transactions { edges { cursor } } }', {}, shop.token)
    const { cursor } = page.body.data.transactions.edges[0]
    const document = `query ($cursor: String) {
      all: transactions { totalCount nodes { id } }
      named: transactions(filter: { reference: "mine" }) { totalCount nodes { id } }
      before: transactions(last: 5, before: $cursor) { nodes { id } }
      after: transactions(first: 5, after: $cursor) { nodes { id } }
    }`
    const { body } = await service.graphql(document, { cursor }, stranger.token)
    expect(body.data).toEqual({
      all: { totalCount: 0, nodes: [] },
      named: { totalCount: 0, nodes: [] },
      before: { nodes: [] },
      after: { nodes: [] },
    })
  })

  test('nor over REST: missing and foreign answer alike', async () => {
    const foreign = await service.rest('GET', `/transactions/${payment.databaseId}`, {
      token: stranger.token,
    })
    const missing = await service.rest('GET', '/transactions/987654321', { token: stranger.token })
    expect(foreign.status).toBe(404)
    expect({ ...foreign.body, request_id: '' }).toEqual({ ...missing.body, request_id: '' })
  })

  test('nor does its reference take one away', async () => {
    const same = await service.rest('POST', '/pay', {
      token: stranger.token,
      body: { amount: 700, customer_phone: '70110000', payment_method: 'OperatorA', reference: 'mine' },
    })
    expect(same.status).toBe(202)
  })
})

describe('GraphQL over HTTP, as its specification audits it', () => {
  const audits = serverAudits({ url: () => `${service.url}/graphql`, fetchFn: fetch })
  test.each(audits.map((audit) => [audit.name, audit] as const))('%s', async (_name, audit) => {
    expect(await audit.fn()).toMatchObject({ status: 'ok' })
  })
})
