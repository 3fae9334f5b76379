import { afterAll, beforeAll, expect, test } from 'vitest'
import { fundMerchant } from '../../src/resources/merchants/fund.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { countingStatements } from '../kit/statement-counts.ts'

/** The number of statements that each documented read takes, for any number of rows: a contract. */
const contract: readonly { name: string; statements: number; document: string }[] = [
  {
    name: 'a page of transactions',
    statements: 1,
    document: '{ transactions(first: 20) { nodes { reference } } }',
  },
  {
    name: 'a page with its exact total',
    statements: 2,
    document:
      '{ transactions(first: 20) { totalCount nodes { id databaseId reference status responseData } } }',
  },
  {
    name: 'a page by cursor, with both directions',
    statements: 1,
    document:
      '{ transactions(first: 2, offset: 3) { edges { cursor node { id } } pageInfo { hasNextPage } } }',
  },
  {
    name: 'a page with what was given back of each',
    statements: 2,
    document:
      '{ transactions(first: 20) { nodes { id refundedAmount refunds { id status } refundOf { id } } } }',
  },
  {
    name: 'a page of payouts with what is withheld of each',
    statements: 2,
    document: '{ payouts(first: 20) { nodes { id withheldAmount } } }',
  },
  {
    name: 'figures of a month by day and operator',
    statements: 1,
    document: `{ paymentStats(from: "2026-01-01", to: "2026-01-31", by: [OPERATOR]) {
      timeZone total { count } buckets { start count amount successRate groups { paymentMethod count } } } }`,
  },
  {
    name: 'figures with the times to settle',
    statements: 1,
    document:
      '{ paymentStats(from: "2026-01-01") { total { count medianMs p95Ms } buckets { start count } } }',
  },
  { name: 'the total alone', statements: 1, document: '{ transactions { totalCount } }' },
  {
    name: 'one transaction',
    statements: 1,
    document: '{ transaction(reference: "count-1") { id amount status } }',
  },
  {
    // The end of the newest rows and what they have, for the page and for the total; the rows of the page.
    name: 'a searched page of transactions in a short list, with its total',
    statements: 5,
    document: '{ transactions(filter: { search: "count" }) { totalCount nodes { reference } } }',
  },
  {
    name: 'a page of transactions by their amounts',
    statements: 2,
    document: '{ transactions(orderBy: AMOUNT_DESC) { nodes { reference } } }',
  },
  {
    name: 'a page of beneficiaries with its total',
    statements: 2,
    document: '{ beneficiaries(first: 20) { totalCount nodes { id databaseId name account } } }',
  },
  {
    name: 'a page of transactions with their ledger entries',
    statements: 2,
    document: '{ transactions(first: 20) { nodes { reference ledgerEntries { step amount } } } }',
  },
  {
    name: 'a page of transactions with their timelines',
    statements: 2,
    document: `{ transactions(first: 20) { nodes { reference timeline { at kind source status statusCode
      eventType refundId } } } }`,
  },
  {
    name: 'a statement with a page of its lines',
    statements: 2,
    document: `{ statement(from: "2026-01-01T00:00:00Z") { opening { balance } closing { balance }
      lines(first: 20) { nodes { entry { step } availableChange } } } }`,
  },
  {
    // The statement, its lines, what all lines say of their payments, and the batches; no other money moved.
    name: 'a statement whose lines show what they are about',
    statements: 4,
    document: `{ statement(from: "2026-01-01T00:00:00Z") { closing { balance }
      lines(first: 100) { nodes { balanceAfter { available } reference counterparty { name phone }
        subject { ... on Transaction { amount } ... on Payout { amount } ... on Batch { title }
          ... on BatchRecipient { account } } } } } }`,
  },
  {
    name: 'the position of the log with what is read after it',
    statements: 2,
    document: '{ asOfSequence transactions(first: 20) { nodes { reference } } }',
  },
  {
    name: 'a page of payouts with its total, and their beneficiaries',
    statements: 2,
    document: `{ payouts(first: 20) { totalCount
      nodes { id databaseId status approval { status } failure { reason } beneficiary { name } } } }`,
  },
  {
    name: 'a page of payouts with their ledger entries',
    statements: 2,
    document: '{ payouts(first: 20) { nodes { reference ledgerEntries { step amount } } } }',
  },
  {
    name: 'a page of payouts, and who approved each',
    statements: 2,
    document: `{ payouts(first: 20) { nodes { reference
      approval { status reason canApprove approvedBy { member { name } } rejectedBy { at } } } } }`,
  },
  {
    name: 'a page of payouts, and who made each',
    statements: 2,
    document: `{ payouts(first: 20) { nodes { reference createdBy { actor kind name }
      approval { requestedBy { name member { name } } requestedAt } } } }`,
  },
  {
    name: 'a page of batches, and who made each',
    statements: 2,
    document: `{ batches(first: 20) { nodes { title createdBy { name member { databaseId name } }
      approval { requestedBy { actor name } requestedAt } } } }`,
  },
  {
    name: 'the open approvals, and who requested',
    statements: 5,
    document: `{ approvalsWaiting(first: 20) { nodes {
      ... on Payout { approval { requestedBy { name } requestedAt } }
      ... on Batch { approval { requestedBy { name } } }
      ... on SettingsChange { approval { requestedBy { name } } }
      ... on DepositApproval { approval { requestedBy { name } requestedAt } } } } }`,
  },
  {
    name: 'the open approvals, of four kinds with its total, and who decided',
    statements: 9,
    document: `{ approvalsWaiting(first: 20) { totalCount nodes { ... on Payout { amount beneficiary { name }
      approval { digest canApprove approvedBy { counts } } }
      ... on Batch { totalAmount approval { digest canApprove approvedBy { counts } } } } } }`,
  },
  {
    name: 'a page of batches with a page of the recipients of each, and both totals',
    statements: 3,
    document: `{ batches(first: 20) { totalCount nodes { databaseId title status recipientCount totalAmount
      pendingCount recipients(first: 50) { totalCount nodes { databaseId name account amount status
        failure { who } settledAt } pageInfo { hasNextPage endCursor } } } } }`,
  },
  {
    name: 'a page of batches, and how many of each failed',
    statements: 1,
    document: `{ batches(first: 20) { nodes { recipients(filter: { status: FAILED }) { totalCount } } } }`,
  },
  {
    name: 'a page of batches, and how many of each an operator pays',
    statements: 2,
    document: `{ batches(first: 20) { nodes {
      recipients(filter: { paymentMethod: OperatorA }) { totalCount } } } }`,
  },
  {
    name: 'a page of batches with two pages of recipients of each, what operators said of them, and batches',
    statements: 6,
    document: `{ batches(first: 20) { nodes {
      all: recipients(last: 5) { edges { cursor node { evidence { state } batch { title } } } }
      waiting: recipients(filter: { status: PENDING }) { nodes { name evidence { attempts } } } } } }`,
  },
  {
    name: 'batches and their recipients with their ledger entries',
    statements: 4,
    document: `{ batches(first: 20) { nodes { ledgerEntries { step }
      recipients(first: 20) { nodes { ledgerEntries { step amount } } } } } }`,
  },
  {
    name: 'the recipients of a batch, by REST',
    statements: 2,
    document: '{ batch(id: 1) { recipients(first: 20, offset: 2) { totalCount nodes { name } } } }',
  },
  {
    name: 'the total of a kind of payouts alone',
    statements: 1,
    document: '{ payouts(filter: { status: PENDING, paymentMethod: OperatorA }) { totalCount } }',
  },
  {
    name: 'one payout',
    statements: 1,
    document: '{ payout(reference: "count-1") { id amount status approval { expiresAt } } }',
  },
  {
    name: 'a page of payment links with its total, and a page of the payments of each',
    statements: 2,
    document: `{ paymentLinks(first: 20) { totalCount nodes { id urlSlug availability
      payments(first: 20, status: SUCCESS) { pageInfo { hasNextPage } nodes { id amount status } } } } }`,
  },
  {
    name: 'webhooks with their deliveries, attempts and events',
    statements: 1,
    document: `{ webhooks { nodes { id url deliveries(first: 20, status: PENDING) { pageInfo { hasNextPage }
      nodes { id status attempts { statusCode answer } event { id sequence data } } } } } }`,
  },
  {
    name: 'webhooks with two pages of deliveries of each of two',
    statements: 3,
    document: `{ webhooks { nodes { a: deliveries(first: 1) { nodes { event { id } } }
      b: deliveries(first: 2) { edges { node { attempts { nth } } } } } } }`,
  },
  {
    name: 'a delivery as a node, and its endpoint, with all that it shows',
    statements: 2,
    document: `{ webhook(id: 1) { id databaseId isActive failureCount deliveries { nodes { type } } }
      node(id: "${btoa('WebhookDelivery:1')}") {
        ... on WebhookDelivery { event { id } attempts { nth } } } }`,
  },
  {
    name: 'a stretch of the log',
    statements: 2,
    document:
      '{ events(first: 20, after: "3") { nodes { id sequence type data } pageInfo { hasNextPage } } }',
  },
  {
    name: 'two lists, one filtered by a kind that must be looked up, and the caller',
    statements: 4,
    document: `{ me { merchant { name } }
      a: transactions(first: 5) { nodes { id } }
      b: transactions(first: 5, filter: { status: PENDING }) { nodes { id } } }`,
  },
]

let service: TestApp
let shop: TestMerchant
beforeAll(async () => {
  service = await startTestApp()
  shop = await service.merchant()
  await Promise.all(
    Array.from({ length: 12 }, (_none, index) =>
      service.rest('POST', '/pay', {
        token: shop.token,
        body: {
          amount: 5000,
          customer_phone: '70110000',
          payment_method: 'OperatorA',
          reference: `count-${index + 1}`,
        },
      }),
    ),
  )
  const { token } = shop
  await fundMerchant(service.app.services, shop.merchantId, { amount: 36_000 })
  const person = { name: 'Awa', account: '70009901', payment_method: 'OperatorA' }
  const saved = await service.rest('POST', '/beneficiaries', { token, body: person })
  await service.rest('PUT', '/settings', { token, body: { payouts_require_approval: true } })
  for (let n = 1; n <= 12; n += 1) {
    const scheduled = { amount: 1_000, scheduled_at: new Date(Date.now() + 86_400_000) }
    const body = { ...scheduled, beneficiary_id: saved.body['data'].id, reference: `count-${n}` }
    await service.rest('POST', '/payouts', { token, body })
  }
  const recipients = Array.from({ length: 12 }, () => ({ ...person, amount: 1_000 }))
  for (let n = 1; n <= 12; n += 1)
    await service.rest('POST', '/bulk/batches', { token, body: { recipients } })
  // Two of them wait for approval.
  for (const id of [1, 2]) {
    const { status } = await service.rest('POST', `/bulk/batches/${id}/process`, { token })
    if (status !== 202) throw new Error(`batch ${id} was not processed: ${status}`)
  }
  for (let id = 1; id <= 2; id += 1) {
    const hooks = { url: 'https://shop.example/', events: ['payment_pending', 'payout_pending'] }
    await service.rest('POST', '/webhooks', { token, body: hooks })
    await service.rest('PUT', `/webhooks/${id}`, { token, body: { is_active: false } })
    const replay = `mutation { replayEvents(webhookId: ${id}, from: 1, to: 20) { __typename } }`
    await service.graphql(replay, {}, token)
  }
})
afterAll(() => service.close())

test.each(contract)('$name takes $statements statements', async ({ document, statements }) => {
  const { answer, seen } = await countingStatements(() => service.graphql(document, {}, shop.token))
  expect(answer.body.errors).toBeUndefined()
  expect(seen).toHaveLength(statements)
})
