import { startChild } from './child.ts'
import type { BenchFixture } from './fixture.ts'
import { load, type Request } from './load.ts'
import { startProduct } from './product.ts'
import type { Section, Workload } from './rounds.ts'
import { addUp, fill } from './list.ts'

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
export const nested: Workload = async (fixture) => {
  const product = await startProduct(fixture, 1)
  const limit = await startChild<{ port: number }>('nested-limit.ts', { databaseUrl: fixture.url })
  const [merchant] = product.merchants
  if (!merchant) throw new Error('No merchant.')
  const { merchantId, token } = merchant
  await fill(fixture, merchantId, rows)
  await addUp(fixture)
  await fillBatches(fixture, merchantId)
  await fixture.owner.query('ANALYZE')
  const ask = (port: number, next: Request) => (seconds: number) =>
    load({ port, connections: clients, seconds, status: 200, next: () => next })
  const section = (title: string, path: string, query: string): Section => ({
    title,
    unit: 'requests/s',
    entries: [
      {
        name: 'limit: one statement',
        processes: [limit.pid],
        measure: ask(limit.ready.port, { method: 'GET', path: `${path}?merchant=${merchantId}` }),
      },
      {
        name: 'GraphQL',
        processes: [product.pid],
        measure: ask(product.port, {
          method: 'POST',
          path: '/graphql',
          headers: { Authorization: `Bearer ${token}` },
          body: JSON.stringify({ query }),
        }),
      },
    ],
  })
  return {
    sections: [
      section('nested: 50 transactions and their total', '/', recent),
      section('nested: 20 batches with 50 recipients each, and the totals', '/batches', dashboard),
    ],
    notes: [
      'limit: bare node:http and one statement that builds the JSON, total from the same counts; no token.',
      `A merchant with ${rows} transactions and ${batches} batches of 200, ${clients} clients.`,
    ],
    async close() {
      await limit.close()
      await product.close()
    },
  }
}

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
