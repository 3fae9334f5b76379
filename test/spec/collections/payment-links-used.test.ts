import { createClient } from 'graphql-ws'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import type { TestMerchant } from '../../kit/app.ts'
import { settleMany } from '../../kit/money.ts'
import { payBy } from '../../kit/money-links.ts'
import { openFixture } from '../../kit/fixture.ts'

// The payments by a link: as a list, in its counts, and live.

const fixture = await openFixture()
const { pool } = fixture.database.database

let shop: TestMerchant
beforeAll(async () => {
  shop = await fixture.merchant()
})

async function linked(merchant = shop, more: object = {}): Promise<number> {
  const body = { title: 'Café', amount: 5_000, ...more }
  const answer = await fixture.rest('POST', '/payment-links', { token: merchant.token, body })
  return answer.body['data'].id
}

async function attempt(link: number, end?: 'success' | 'failed'): Promise<number> {
  const { id } = await payBy(pool, link)
  if (end) await settleMany(pool, [{ id, to: end }])
  return Number(id)
}

async function tokenOf({ apiKey, apiSecret }: TestMerchant, scopes: string[]): Promise<string> {
  const headers = { 'X-API-Key': apiKey, 'X-API-Secret': apiSecret }
  return (await fixture.rest('POST', '/auth', { headers, body: { scopes } })).body['data'].token
}

const listed = `query ($id: ID!, $first: Int, $after: String, $status: [TransactionStatus!]) {
  paymentLink(id: $id) { usageCount openCount availability
    payments(first: $first, after: $after, status: $status) {
      nodes { databaseId } pageInfo { hasNextPage hasPreviousPage endCursor } } } }`
async function payments(id: number, more: object = {}, token = shop.token) {
  const { body } = await fixture.graphql(listed, { id, ...more }, token)
  expect(body['errors']).toBeUndefined()
  const { payments: page, ...link } = body['data'].paymentLink
  return { ...link, ...page.pageInfo, ids: page.nodes.map((node: { databaseId: number }) => node.databaseId) }
}

test('its payments are a list, newest first, by pages and by status, with their counts', async () => {
  const link = await linked(shop, { usage_limit: 4 })
  await attempt(await linked(), 'success')
  const ids = [
    await attempt(link, 'success'),
    await attempt(link, 'failed'),
    await attempt(link, 'success'),
    await attempt(link),
  ].toReversed()
  expect(await payments(link)).toMatchObject({ ids, usageCount: 2, openCount: 1, availability: 'OPEN' })
  const { endCursor, ...page } = await payments(link, { first: 3 })
  expect(page).toMatchObject({ ids: ids.slice(0, 3), hasNextPage: true, hasPreviousPage: false })
  expect(await payments(link, { first: 3, after: endCursor })).toMatchObject({
    ids: ids.slice(3),
    hasNextPage: false,
    hasPreviousPage: true,
  })
  expect(await payments(link, { status: 'SUCCESS' })).toMatchObject({ ids: [ids[1], ids[3]] })
  await attempt(link)
  expect(await payments(link)).toMatchObject({ availability: 'EXHAUSTED' })
  const read = await fixture.rest('GET', `/payment-links/${link}`, { token: shop.token })
  expect(read.body['data']).toMatchObject({ usage_count: 2, usage_limit: 4, availability: 'exhausted' })
  for (const wrong of [{ first: 0 }, { first: 101 }, { after: 'x' }]) {
    const { body } = await fixture.graphql(listed, { id: link, ...wrong }, shop.token)
    expect(body['errors'][0].extensions.code).toBe('INVALID_INPUT')
  }
})

test('the cursors of a page of payments can be read alone', async () => {
  const link = await linked()
  const id = await attempt(link)
  const document = `query ($id: ID!) { paymentLink(id: $id) { payments { edges { cursor } } } }`
  const { body } = await fixture.graphql(document, { id: link }, shop.token)
  expect(body).toMatchObject({ data: { paymentLink: { payments: { edges: [{ cursor: String(id) }] } } } })
})

test('payments and their links each take their own scope', async () => {
  const link = await linked()
  const id = await attempt(link)
  const back = `{ transaction(databaseId: ${id}) { paymentLink { databaseId } } }`
  expect((await fixture.graphql(back, {}, shop.token)).body['data']).toEqual({
    transaction: { paymentLink: { databaseId: link } },
  })
  const cases = [
    [['payment_links'], listed],
    [['balance'], back],
  ] as const
  for (const [scopes, document] of cases) {
    const token = await tokenOf(shop, [...scopes])
    const { body } = await fixture.graphql(document, { id: link }, token)
    expect(body['errors'][0].extensions.code).toBe('FORBIDDEN')
  }
})

interface Use {
  cursor: string
  usageCount: number
  transaction: { databaseId: number }
}

const followed = `subscription ($after: String) { paymentLinkUsed(after: $after) {
  cursor sequence type occurredAt urlSlug reference amount usageCount
  paymentLink { databaseId usageCount } transaction { databaseId status } } }`

function follow({ token }: Pick<TestMerchant, 'token'>, after?: string) {
  const client = createClient({
    url: `${fixture.url.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${token}` },
  })
  onTestFinished(() => void client.dispose())
  return client.iterate<{ paymentLinkUsed: Use }>({ query: followed, variables: { after } })
}

async function take(results: ReturnType<typeof follow>, count: number): Promise<Use[]> {
  const uses: Use[] = []
  for await (const { data, errors } of results) {
    expect(errors).toBeUndefined()
    if (data) uses.push(data.paymentLinkUsed)
    if (uses.length === count) break
  }
  return uses
}

test('each payment by a link is delivered live, once, and the stream goes on from any cursor', async () => {
  const merchant = await fixture.merchant()
  const link = await linked(merchant)
  await attempt(await linked(), 'success')
  const results = take(follow(merchant, '0'), 3)
  const paid = []
  for (let n = 0; n < 3; n += 1) {
    await attempt(link, 'failed')
    paid.push(await attempt(link, 'success'))
  }
  const uses = await results
  expect(uses.map(({ transaction }) => transaction.databaseId)).toEqual(paid)
  expect(uses[0]).toEqual({
    cursor: expect.stringMatching(/^\d+$/),
    sequence: expect.any(Number),
    type: 'PAYMENT_LINK_USED',
    occurredAt: expect.stringMatching(/Z$/),
    urlSlug: expect.stringMatching(/^[a-z0-9]{10}$/),
    reference: expect.any(String),
    amount: 5_000,
    usageCount: 1,
    paymentLink: { databaseId: link, usageCount: expect.any(Number) },
    transaction: { databaseId: paid[0], status: 'SUCCESS' },
  })
  expect(await take(follow(merchant, uses[0]?.cursor), 2)).toMatchObject([
    { usageCount: 2, cursor: uses[1]?.cursor },
    { usageCount: 3, cursor: uses[2]?.cursor },
  ])
  // Other parts of the log need other scopes.
  const token = await tokenOf(merchant, ['payment_links'])
  await expect(take(follow({ token }, '0'), 1)).rejects.toMatchObject([{ extensions: { code: 'FORBIDDEN' } }])
})

test('the log and webhooks have the event with the field names of the specification', async () => {
  const merchant = await fixture.merchant()
  const link = await linked(merchant, { url_slug: 'told-in-words' })
  const id = await attempt(link, 'success')
  const [use] = await take(follow(merchant, '0'), 1)
  const { body } = await fixture.graphql('{ events(first: 100) { nodes { type data } } }', {}, merchant.token)
  const useEvents = body['data'].events.nodes.filter(
    ({ type }: { type: string }) => type === 'PAYMENT_LINK_USED',
  )
  expect(useEvents).toEqual([
    {
      type: 'PAYMENT_LINK_USED',
      data: {
        payment_link_id: link,
        url_slug: 'told-in-words',
        transaction_id: id,
        reference: expect.any(String),
        amount: 5_000,
        usage_count: use?.usageCount,
      },
    },
  ])
})
