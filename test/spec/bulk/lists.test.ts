import { beforeAll, expect, test } from 'vitest'
import { asMerchant } from '../../../src/database/merchant-pool.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { bulkOn, row } from '../../kit/bulk.ts'
import { openFixture } from '../../kit/fixture.ts'

// Reads of batches and their recipients.

const fixture = await openFixture()
const { call, shop, draft, process, ended } = bulkOn(fixture)

async function ask(merchant: TestMerchant, document: string, variables: object = {}) {
  const { body } = await fixture.graphql(document, variables, merchant.token)
  expect(body['errors']).toBeUndefined()
  return body['data']
}

/** A batch that was paid in part: four paid, two without a wallet. */
let merchant: TestMerchant
let paid: number
beforeAll(async () => {
  merchant = await shop()
  const rows = ['00', '03', '00', '03', '00', '00'].map((scenario, index) =>
    row(scenario, { name: `Awa Traoré ${index}`, payment_method: index < 3 ? 'OperatorA' : 'OperatorB' }),
  )
  paid = await draft(merchant, rows, { title: 'Salaires' })
  await process(merchant, paid)
  await ended(merchant, paid)
})

test('200 the recipients of a batch: a bare array, newest first, other pages in its headers', async () => {
  const answer = await call(merchant, 'GET', `/${paid}/recipients?limit=2&offset=1`)
  expect(answer.status).toBe(200)
  expect(answer.body['data']).toEqual([
    {
      id: expect.any(Number),
      name: 'Awa Traoré 4',
      account: expect.stringMatching(/^\+22370/),
      amount: 2_000,
      payment_method: 'OperatorB',
      status: 'success',
      settled_amount: 2_000,
      settled_at: expect.stringMatching(/Z$/),
    },
    expect.objectContaining({ status: 'failed', failure_reason: 'PAYEE_NOT_FOUND' }),
  ])
  expect(answer.headers.get('x-total-count')).toBe('6')
  expect(answer.headers.get('link')).toContain(
    `/bulk/batches/${paid}/recipients?limit=2&offset=3>; rel="next"`,
  )
  expect(answer.headers.get('x-graphql-operation')).toBe('BatchRecipients')
})

test('200 the recipients with a status', async () => {
  const failed = await call(merchant, 'GET', `/${paid}/recipients?status=failed`)
  expect(failed.body['data'].map(({ name }: { name: string }) => name)).toEqual([
    'Awa Traoré 3',
    'Awa Traoré 1',
  ])
  expect(failed.headers.get('x-total-count')).toBe('2')
  const pending = await call(merchant, 'GET', `/${paid}/recipients?status=pending`)
  expect(pending.body['data']).toEqual([])
})

test.each([
  ['limit=101', 'limit'],
  ['limit=0', 'limit'],
  ['offset=-1', 'offset'],
  ['offset=x', 'offset'],
  ['status=gone', 'status'],
  ['limit=0&status=gone&account=1', 'limit, account, status'],
])('400 %s', async (query, fields) => {
  const { status, body } = await call(merchant, 'GET', `/${paid}/recipients?${query}`)
  expect(status).toBe(400)
  const wrong = body['errors'].map(({ field }: { field: string }) => field)
  expect(wrong.toSorted()).toEqual(fields.split(', ').toSorted())
})

test("404 the recipients of another merchant's batch", async () => {
  const other = await shop(0)
  expect((await call(other, 'GET', `/${paid}/recipients`)).status).toBe(404)
  expect((await call(merchant, 'GET', '/2000000000/recipients')).status).toBe(404)
})

const batchOf = 'query ($id: ID!) { batch(id: $id)'
const filtered = 'query ($id: ID!, $filter: RecipientFilter) { batch(id: $id)'

test.each([
  [{ status: 'FAILED' }, 2],
  [{ paymentMethod: 'OperatorB' }, 3],
  [{ paymentMethod: 'OperatorB', status: 'SUCCESS' }, 2],
  [{ name: 'TRAORÉ 4' }, 1],
  [{ name: 'traore' }, 6],
  [{ search: 'traore 4' }, 1],
  [{ name: '%' }, 0],
  [{ name: 'Awa', paymentMethod: 'OperatorC' }, 0],
])('a dashboard sees the recipients that the filter %o selects, and their number', async (filter, count) => {
  const { batch } = await ask(
    merchant,
    `${filtered} { recipients(filter: $filter) { totalCount nodes { name } } } }`,
    { id: paid, filter },
  )
  expect(batch.recipients.totalCount).toBe(count)
  expect(batch.recipients.nodes).toHaveLength(count)
})

test('REST finds a recipient by a part of the name, without its accents', async () => {
  const { status, body } = await call(merchant, 'GET', `/${paid}/recipients?search=TRAORE%204`)
  expect(status).toBe(200)
  expect(body['data']).toEqual([expect.objectContaining({ name: expect.stringMatching(/Traoré 4$/) })])
  expect((await call(merchant, 'GET', `/${paid}/recipients?search=tr`)).body['errors']).toEqual([
    { field: 'search', message: 'must have at least 3 letters or digits' },
  ])
})

test('a dashboard finds a recipient by the number', async () => {
  const read = `${filtered} { recipients(filter: $filter) { totalCount nodes { account } } } }`
  const all = await ask(merchant, read, { id: paid })
  const [{ account }] = all.batch.recipients.nodes
  const filter = { account: account.slice(4) }
  const { batch } = await ask(merchant, read, { id: paid, filter })
  expect(batch.recipients).toEqual({ totalCount: 1, nodes: [{ account }] })
})

test("a dashboard sees the operator's answer for each", async () => {
  const evidence =
    'evidence { state correlationId attempts checks source operatorReference message settledAt createdAt }'
  const { batch } = await ask(
    merchant,
    `${batchOf} { pendingCount succeededCount
      recipients(first: 3) { nodes { status operatorReference failure { who } batch { title }
        ${evidence} } } } }`,
    { id: paid },
  )
  const [, done, refused] = batch.recipients.nodes
  expect(batch).toMatchObject({ pendingCount: 0, succeededCount: 4 })
  expect(done).toMatchObject({
    status: 'SUCCESS',
    batch: { title: 'Salaires' },
    evidence: { state: 'SETTLED', attempts: 1, operatorReference: done.operatorReference },
  })
  expect(refused).toMatchObject({
    status: 'FAILED',
    failure: { who: 'MERCHANT' },
    evidence: { state: 'REFUSED', source: 'INITIATE', message: expect.any(String) },
  })
  const waiting = await draft(merchant, [row()])
  const asDraft = await ask(merchant, `${batchOf} { pendingCount recipients { nodes { ${evidence} } } } }`, {
    id: waiting,
  })
  expect(asDraft.batch).toEqual({ pendingCount: 1, recipients: { nodes: [{ evidence: null }] } })
})

test('the ledger shows the reservation of a batch, and the end of each recipient', async () => {
  const entries = 'ledgerEntries { step amount }'
  const { batch } = await ask(
    merchant,
    `${batchOf} { ${entries} recipients(first: 3) {
    nodes { databaseId ${entries} } } } }`,
    { id: paid },
  )
  expect(batch.ledgerEntries).toEqual([{ step: 'RESERVE', amount: 12_000 }])
  const [, done, refused] = batch.recipients.nodes
  expect(done.ledgerEntries).toEqual([{ step: 'POST', amount: 2_000 }])
  expect(refused.ledgerEntries).toEqual([{ step: 'VOID', amount: 2_000 }])
  const { statement } = await ask(
    merchant,
    `{ statement(from: "2020-01-01T00:00:00Z") { lines { nodes {
      entry { step } batchId recipientId payoutId } } } }`,
  )
  const line = (step: string, ids: object) => ({
    entry: { step },
    batchId: null,
    recipientId: null,
    payoutId: null,
    ...ids,
  })
  expect(statement.lines.nodes).toEqual(
    expect.arrayContaining([
      line('RESERVE', { batchId: paid }),
      line('POST', { recipientId: done.databaseId }),
      line('VOID', { recipientId: refused.databaseId }),
    ]),
  )
  const csv = await fetch(`${fixture.url}/merchant/api/exports/statement.csv?from=2020-01-01`, {
    headers: { Authorization: `Bearer ${merchant.token}` },
  })
  const lines = (await csv.text()).trim().split(/\r?\n/)
  expect(lines[0]).toMatch(/,batch_id,recipient_id$/)
  expect(lines.filter((each) => each.endsWith(`,${paid},`))).toHaveLength(1)
  expect(lines.filter((each) => each.endsWith(`,,${done.databaseId}`))).toHaveLength(1)
})

test('a recipient is a node, with its batch', async () => {
  const { batch } = await ask(merchant, `${batchOf} { id recipients { nodes { id name } } } }`, { id: paid })
  const [first] = batch.recipients.nodes
  const read = 'query ($id: ID!) { node(id: $id) { id ... on BatchRecipient { name batch { id } } } }'
  expect((await ask(merchant, read, { id: first.id })).node).toEqual({ ...first, batch: { id: batch.id } })
})

const page =
  'edges { cursor node { databaseId } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }'

/** Walks through a list by its cursors. @returns the ids in their order, and the sizes of the pages */
async function walk(whose: TestMerchant, field: (args: string) => string, forward: boolean) {
  const ids: number[] = []
  let cursor: string | null = null
  for (let hasMore = true; hasMore; ) {
    const position = cursor === null ? '' : `, ${forward ? 'after' : 'before'}: "${cursor}"`
    const data = await ask(whose, field(`${forward ? 'first' : 'last'}: 4${position}`))
    const { edges, pageInfo } = data.list ?? data.batch.list
    const found = edges.map(({ node }: { node: { databaseId: number } }) => node.databaseId)
    ids.splice(forward ? ids.length : 0, 0, ...found)
    cursor = forward ? pageInfo.endCursor : pageInfo.startCursor
    hasMore = forward ? pageInfo.hasNextPage : pageInfo.hasPreviousPage
  }
  return ids
}

test.each([true, false])('recipients and batches by cursors, forward: %s', async (forward) => {
  const other = await shop(0)
  const batches: number[] = []
  for (let n = 0; n < 9; n += 1) batches.push(await draft(other, [row()]))
  const many = await draft(
    other,
    Array.from({ length: 10 }, () => row()),
  )
  batches.push(many)
  expect(await walk(other, (args) => `{ list: batches(${args}) { ${page} } }`, forward)).toEqual(
    batches.toReversed(),
  )
  const walked = await walk(
    other,
    (args) => `{ batch(id: ${many}) { list: recipients(${args}) { ${page} } } }`,
    forward,
  )
  const listed = await call(other, 'GET', `/${many}/recipients?limit=100`)
  expect(walked).toEqual(listed.body['data'].map(({ id }: { id: number }) => id))
})

test('batches of a status, with their exact number', async () => {
  const other = await shop(0)
  const kept = await draft(other, [row()])
  const cancelledId = await draft(other, [row()])
  await fixture.rest('POST', `/bulk/batches/${cancelledId}/cancel`, { token: other.token })
  const document = `{ all: batches { totalCount } waiting: batches(filter: { status: DRAFT }) {
    totalCount nodes { databaseId } } }`
  expect(await ask(other, document)).toEqual({
    all: { totalCount: 2 },
    waiting: { totalCount: 1, nodes: [{ databaseId: kept }] },
  })
})

test('an unknown cursor is refused', async () => {
  for (const cursor of ['x', btoa('GPC:S:x'), btoa('GPC:S:')]) {
    const { body } = await fixture.graphql(
      `{ batch(id: ${paid}) { recipients(after: "${cursor}") { nodes { id } } } }`,
      {},
      merchant.token,
    )
    expect(body['errors'][0].extensions.code).toMatch(/INPUT/)
  }
})

test('a page at the end of ten thousand costs as little as one at the beginning', async () => {
  const other = await shop(0)
  const { owner } = fixture.database
  const { rows } = await owner.query<{ id: number }>(
    `WITH made AS (
       INSERT INTO batch (merchant_id, maker, created_at, recipient_count, total_amount)
       VALUES ($1, 'api_key:1', now(), 10000, 10000000) RETURNING *, batch AS self
     ), told AS (
       SELECT append_events(array_agg(($1::int, 'batch_draft', batch_event_data(made.self, NULL))::new_event),
         now()) FROM made
     ), added AS (
       INSERT INTO batch_recipient (merchant_id, batch_id, name, account, amount, payment_method)
       SELECT $1, made.id, 'Awa ' || n, '+22370000000', 1000, 'OperatorA'
       FROM made, generate_series(1, 10000) AS n
     ) SELECT id FROM made, told`,
    [other.merchantId],
  )
  const [made] = rows
  const deep = await ask(
    other,
    `{ batch(id: ${made?.id}) { recipients(first: 100, offset: 9900) { totalCount
      edges { cursor node { name } } pageInfo { hasNextPage } } } }`,
  )
  const { edges, ...rest } = deep.batch.recipients
  expect(rest).toEqual({ totalCount: 10_000, pageInfo: { hasNextPage: false } })
  expect(edges.map(({ node }: { node: { name: string } }) => node.name)).toEqual(
    Array.from({ length: 100 }, (_none, n) => `Awa ${100 - n}`),
  )
  const middle = await owner.query<{ id: bigint }>(
    'SELECT id FROM batch_recipient WHERE batch_id = $1 ORDER BY id OFFSET 5000 LIMIT 1',
    [made?.id],
  )
  const { id } = middle.rows[0] ?? { id: 0n }
  for (const analyse of ['', 'ANALYZE batch_recipient']) {
    await owner.query(analyse)
    // A hundred rows are in a dozen blocks, all rows in some hundreds.
    expect(await blocksOf(other, [made?.id, 0, id, false])).toBeLessThan(30)
    expect(await blocksOf(other, [made?.id, id, String(2n ** 63n - 1n), true])).toBeLessThan(30)
  }
})

/** The number of blocks that a page of a hundred reads: of a batch, between two ids, backward or not. */
async function blocksOf({ merchantId }: TestMerchant, where: unknown[]): Promise<number> {
  const read = {
    text: `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)
      SELECT id FROM page_of_recipients($1, $2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
        $3, $4, $5, 100, 0)`,
    values: [merchantId, ...where],
  }
  const { merchantPool } = fixture.app.services.database
  const explain = () =>
    asMerchant(merchantId, () =>
      merchantPool.query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(read),
    )
  // The first query of a session also reads catalogs.
  await explain()
  const { rows } = await explain()
  const plan = rows[0]?.['QUERY PLAN'][0].Plan
  expect(plan?.['Actual Rows']).toBe(100)
  return plan?.['Shared Hit Blocks'] ?? Infinity
}
