import { expect, test } from 'vitest'
import { customer, openFixture } from '../../kit/fixture.ts'

// A client cache keeps an object under its type and its `id`: the same object has the same id wherever it is
// read, and two objects never share one.

const fixture = await openFixture()
const graphql = (...call: Parameters<typeof fixture.graphql>) => fixture.graphql(...call)

async function read(token: string, query: string, variables: object = {}) {
  const { body } = await graphql(query, variables, token)
  expect(body['errors']).toBeUndefined()
  return body['data']
}

const kept = `{
  me { id merchant { id } member { id } }
  settings { id businessName pendingChange { id } }
  balance { id }
  statement(from: "2026-01-01T00:00:00Z", to: "2026-02-01T00:00:00Z") { id }
  auditLog(first: 1) { nodes { id operation } }
}`

test('settings, merchant and audit entries are found by node(id), by their own merchant only', async () => {
  const [shop, other] = [await fixture.merchant(), await fixture.merchant()]
  await fixture.rest('PUT', '/settings', { token: shop.token, body: { business_name: 'Café Bamako' } })
  const { me, settings, auditLog } = await read(shop.token, kept)
  const ids = [me.merchant.id, settings.id, auditLog.nodes[0].id]
  const query = `query ($ids: [ID!]!) { nodes(ids: $ids) { __typename id
    ... on Merchant { name } ... on Settings { businessName } ... on AuditEntry { operation } } }`
  expect(await read(shop.token, query, { ids })).toEqual({
    nodes: [
      { __typename: 'Merchant', id: ids[0], name: 'Café Bamako' },
      { __typename: 'Settings', id: ids[1], businessName: 'Café Bamako' },
      { __typename: 'AuditEntry', id: ids[2], operation: 'updateSettings' },
    ],
  })
  expect(await read(other.token, query, { ids })).toEqual({ nodes: [null, null, null] })
})

test('the same object has the same id at every read; other merchants have other ids', async () => {
  const [shop, other] = [await fixture.merchant(), await fixture.merchant()]
  const idsOf = async (token: string) => JSON.stringify(await read(token, kept)).match(/"id":"[^"]+"/g)
  const [first, again, others] = [await idsOf(shop.token), await idsOf(shop.token), await idsOf(other.token)]
  expect(first).toEqual(again)
  expect(first?.length).toBeGreaterThanOrEqual(5)
  expect(new Set([...(first ?? []), ...(others ?? [])]).size).toBe(2 * (first ?? []).length)
})

test('balances of different moments and operators have different ids', async () => {
  const { token } = await fixture.merchant()
  const at = new Date(Date.now() - 60_000).toISOString()
  const { now, again, past, asked } = await read(
    token,
    `query ($at: DateTime) { now: balance { id } again: balance { id } past: balance(at: $at) { id }
      asked: balance(paymentMethod: OperatorA) { id } }`,
    { at },
  )
  expect(again.id).toBe(now.id)
  expect(new Set([now.id, past.id, asked.id]).size).toBe(3)
})

test('the id of a collected payment is that of its transaction: transaction(by:) reads it', async () => {
  const { token } = await fixture.merchant()
  const { collectPayment } = await read(
    token,
    `mutation ($input: CollectPaymentInput!) { collectPayment(input: $input) {
      ... on PaymentInitiation { id databaseId reference transaction { id } } } }`,
    { input: { amount: 5_000, customerPhone: customer('00'), paymentMethod: 'OperatorA' } },
  )
  const { id, databaseId, reference, transaction } = collectPayment
  expect(transaction.id).toBe(id)
  const query = `query ($by: TransactionLookup, $id: ID, $databaseId: SafeInt, $reference: String) {
    transaction(by: $by, id: $id, databaseId: $databaseId, reference: $reference) { id databaseId } }`
  const lookups = [{ id }, { id: String(databaseId) }, { reference }]
  for (const by of [...lookups, { databaseId }, ...lookups.map((lookup) => ({ by: lookup }))])
    expect(await read(token, query, by)).toEqual({ transaction: { id, databaseId } })
  for (const by of [{}, { id, reference }, { by: { id }, reference }]) {
    const { body } = await graphql(query, by, token)
    expect(body['data']).toEqual({ transaction: null })
    expect(body['errors']).toMatchObject([
      { extensions: { code: 'INVALID_INPUT', problems: [{ field: 'by' }] } },
    ])
  }
})
