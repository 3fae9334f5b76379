import { bearer, compare, requests } from './compare.ts'
import type { BenchFixture } from './fixture.ts'
import { addUp, fill } from './list.ts'
import type { Section } from './rounds.ts'

const clients = 8
const rows = 10_000
const batches = 200

const recent = `query Recent {
  transactions(first: 50) {
    totalCount
    nodes { databaseId reference status paymentMethod amount customerPhone createdAt }
  }
}`

const dashboard = `query Dashboard {
  batches(first: 20) {
    totalCount
    nodes { databaseId title status recipientCount totalAmount recipients(first: 50) {
      totalCount
      nodes { databaseId name account amount paymentMethod status }
    } }
  }
}`

/** Nested reads through GraphQL, each against one statement that builds the JSON. */
export const nested = compare({ merchants: 1 }, async ({ fixture, product, start }) => {
  const limit = await start({ workload: 'nested' })
  const [merchant] = product.merchants
  if (!merchant) throw new Error('No merchant.')
  const { merchantId } = merchant
  await fill(fixture, merchantId, rows)
  await addUp(fixture)
  await fillBatches(fixture, merchantId)
  await fixture.owner.query('ANALYZE')
  const asked = { connections: clients, status: 200 }
  const section = (title: string, path: string, query: string): Section => {
    const bare = { method: 'GET', path: `${path}?merchant=${merchantId}` }
    const body = JSON.stringify({ query })
    const whole = { method: 'POST', path: '/graphql', headers: bearer(merchant), body }
    return {
      title,
      unit: 'requests/s',
      entries: [
        requests('limit: one statement', limit, { ...asked, next: () => bare }),
        requests('GraphQL', product, { ...asked, next: () => whole }),
      ],
    }
  }
  return {
    sections: [
      section('nested: 50 transactions and their total', '/', recent),
      section('nested: 20 batches with 50 recipients each, and the totals', '/batches', dashboard),
    ],
    notes: [
      'limit: bare node:http and one statement that builds the JSON, total from the same counts; no token.',
      `A merchant with ${rows} transactions and ${batches} batches of 200, ${clients} clients.`,
    ],
  }
})

/** Drafts of 200 recipients each. */
async function fillBatches({ owner }: BenchFixture, merchantId: number): Promise<void> {
  await owner.query(
    `INSERT INTO batch (merchant_id, title, maker, created_at, recipient_count, total_amount)
     SELECT $1, 'Salaries ' || n, 'api_key:1', now(), 200, 200000 FROM generate_series(1, $2) AS n`,
    [merchantId, batches],
  )
  await owner.query(
    `INSERT INTO batch_recipient (merchant_id, batch_id, name, account, amount, payment_method)
     SELECT $1, b.id, 'Awa ' || n, '+22370000001', 1000, 'OperatorA'
     FROM batch b, generate_series(1, 200) AS n WHERE b.merchant_id = $1`,
    [merchantId],
  )
}
