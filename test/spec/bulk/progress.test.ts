import { createClient as createSseClient } from 'graphql-sse'
import { createClient } from 'graphql-ws'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import type { TestMerchant } from '../../kit/app.ts'
import { bulkOn, row } from '../../kit/bulk.ts'
import { customer, openFixture } from '../../kit/fixture.ts'

// The live progress of a batch.

const fixture = await openFixture()
const { shop, draft, process, cancel, ended } = bulkOn(fixture)

interface Change extends Record<string, unknown> {
  cursor: string
  recipientCount: number
  pendingCount: number
  processingCount: number
  succeededCount: number
  failedCount: number
}
type ProgressResults = AsyncIterable<{
  data?: Record<string, unknown> | null
  errors?: readonly { message: string; extensions?: Record<string, unknown> }[]
}>

const query = `subscription ($batchId: ID, $after: String) { batchProgress(batchId: $batchId, after: $after) {
  sequence cursor type status previousStatus recipientCount pendingCount processingCount succeededCount
  failedCount cancelledCount totalAmount paidAmount unpaidAmount percentage rate estimatedEnd occurredAt
  batch { databaseId title } } }`

function follow({ token }: TestMerchant, variables: Record<string, unknown>): ProgressResults {
  const client = createClient({
    url: `${fixture.url.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${token}` },
  })
  onTestFinished(() => void client.dispose())
  return client.iterate({ query, variables }) as ProgressResults
}

function followBySse({ token }: TestMerchant, variables: Record<string, unknown>): ProgressResults {
  const headers = { Authorization: `Bearer ${token}` }
  const client = createSseClient({ url: `${fixture.url}/graphql`, headers, retryAttempts: 0 })
  onTestFinished(() => client.dispose())
  return client.iterate({ query, variables }) as ProgressResults
}

/** The changes up to the last wanted one. */
async function take(results: ProgressResults, isLast: (change: Change) => boolean): Promise<Change[]> {
  const seen: Change[] = []
  for await (const { data, errors } of results) {
    expect(errors).toBeUndefined()
    const change = data?.['batchProgress'] as Change
    seen.push(change)
    if (isLast(change)) break
  }
  return seen
}

const isOver = ({ type }: Change) => type === 'BULK_PAY_DONE'

test('a batch is followed from its draft to its end, and no count goes back', async () => {
  const merchant = await shop()
  const rows = Array.from({ length: 30 }, (_none, index) =>
    row(index % 10 === 9 ? '03' : '00', {
      payment_method: 'OperatorA',
      // Some recipients need a second, so that the batch is seen while it runs.
      ...(index % 5 === 0 && { account: customer('00', '01') }),
    }),
  )
  const id = await draft(merchant, rows, { title: 'Salaires' })
  const other = await draft(merchant, [row()])
  const live = take(follow(merchant, { batchId: String(id), after: '0' }), isOver)
  await process(merchant, id)
  await cancel(merchant, other)
  const seen = await live
  const last = seen.at(-1)
  expect(seen.map(({ batch }) => (batch as { databaseId: number }).databaseId)).toEqual(seen.map(() => id))
  expect(seen.slice(0, 2)).toMatchObject([
    {
      type: 'BATCH_DRAFT',
      status: 'DRAFT',
      previousStatus: null,
      pendingCount: 30,
      percentage: 0,
      rate: null,
    },
    { type: 'BATCH_PROCESSING', status: 'PROCESSING', previousStatus: 'DRAFT', estimatedEnd: null },
  ])
  expect(last).toMatchObject({
    status: 'PARTIALLY_COMPLETED',
    previousStatus: 'PROCESSING',
    pendingCount: 0,
    processingCount: 0,
    succeededCount: 27,
    failedCount: 3,
    totalAmount: 60_000,
    paidAmount: 54_000,
    unpaidAmount: 6_000,
    percentage: 100,
    estimatedEnd: null,
    batch: { title: 'Salaires' },
  })
  expect(last?.['rate']).toBeGreaterThan(0)
  const progress = seen.filter(({ type }) => type === 'BATCH_PROGRESS')
  expect(progress.length).toBeGreaterThan(1)
  for (const { occurredAt, estimatedEnd } of progress)
    expect(Date.parse(String(estimatedEnd))).toBeGreaterThan(Date.parse(String(occurredAt)))
  for (const [index, change] of seen.entries()) {
    const { recipientCount, pendingCount, processingCount, succeededCount, failedCount } = change
    expect(pendingCount + processingCount + succeededCount + failedCount).toBe(recipientCount)
    expect(change['percentage']).toBe((100 * (succeededCount + failedCount)) / recipientCount)
    const before = seen[index - 1]
    if (!before) continue
    for (const count of ['succeededCount', 'failedCount', 'paidAmount', 'percentage', 'sequence'] as const)
      expect(change[count]).toBeGreaterThanOrEqual(Number(before[count]))
    expect(pendingCount).toBeLessThanOrEqual(before.pendingCount)
  }
  // A reader that comes back with any cursor gets the rest, by either transport.
  const [middle] = progress
  const rest = seen.slice(seen.indexOf(middle as Change) + 1)
  for (const resume of [follow, followBySse])
    expect(await take(resume(merchant, { batchId: String(id), after: middle?.cursor }), isOver)).toEqual(rest)
})

test('all batches are followed together', async () => {
  const merchant = await shop()
  const one = await draft(merchant, [row()])
  await fixture.paid(merchant)
  const two = await draft(merchant, [row()])
  await cancel(merchant, one)
  await process(merchant, two)
  await ended(merchant, two)
  const seen = await take(followBySse(merchant, { after: '0' }), isOver)
  expect(seen.map(({ type, batch }) => [type, (batch as { databaseId: number }).databaseId])).toEqual([
    ['BATCH_DRAFT', one],
    ['BATCH_DRAFT', two],
    ['BATCH_CANCELLED', one],
    ['BATCH_PROCESSING', two],
    ['BULK_PAY_DONE', two],
  ])
})

test('a batch of another merchant is not found', async () => {
  const [merchant, stranger] = [await shop(), await shop(0)]
  const id = await draft(merchant, [row()])
  for (const batchId of [String(id), '2000000000', 'x']) {
    const answer = await fixture.graphql(query, { batchId }, stranger.token)
    expect(answer).toMatchObject({ status: 404, body: { errors: [{ extensions: { code: 'NOT_FOUND' } }] } })
  }
})
