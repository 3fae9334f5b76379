import { startChild } from './child.ts'
import { load, type Request } from './load.ts'
import { startProduct } from './product.ts'
import type { Workload } from './rounds.ts'
import { addUp, fill } from './list.ts'

const clients = 8
const rows = 10_000

const document = `query Recent {
  transactions(first: 50) {
    totalCount
    nodes { databaseId reference status paymentMethod amount customerPhone createdAt }
  }
}`

/** A nested read through GraphQL, against one statement that builds the JSON. */
export const nested: Workload = async (ground) => {
  const product = await startProduct(ground, 1)
  const limit = await startChild<{ port: number }>('nested-limit.ts', { databaseUrl: ground.url })
  const [merchant] = product.merchants
  if (!merchant) throw new Error('No merchant.')
  const { merchantId, token } = merchant
  await fill(ground, merchantId, rows)
  await addUp(ground)
  const ask = (port: number, next: Request) => (seconds: number) =>
    load({ port, connections: clients, seconds, status: 200, next: () => next })
  return {
    sections: [
      {
        title: 'nested: 50 transactions and their total',
        unit: 'requests/s',
        entries: [
          {
            name: 'limit: one statement',
            processes: [limit.pid],
            measure: ask(limit.ready.port, { method: 'GET', path: `/?merchant=${merchantId}` }),
          },
          {
            name: 'GraphQL',
            processes: [product.pid],
            measure: ask(product.port, {
              method: 'POST',
              path: '/graphql',
              headers: { Authorization: `Bearer ${token}` },
              body: JSON.stringify({ query: document }),
            }),
          },
        ],
      },
    ],
    notes: [
      'limit: bare node:http and one statement that builds the JSON, total from the same counts; no token.',
      `A merchant with ${rows} transactions, ${clients} clients. Batches of recipients come with bulk pay.`,
    ],
    async close() {
      await limit.close()
      await product.close()
    },
  }
}
