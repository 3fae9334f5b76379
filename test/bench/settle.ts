import { randomUUID } from 'node:crypto'
import { collectMany } from '../kit/money.ts'
import { startChild } from './child.ts'
import { numbered } from './collect.ts'
import type { BenchFixture } from './fixture.ts'
import { startProduct } from './product.ts'
import type { BenchEntry, Goal, Measurement, Workload } from './rounds.ts'
import type { Settling } from './settling.ts'

const merchantsCount = 1_000
/** Two statements of 64 under way: with fewer the cost of a full statement could not be measured. */
const width = 128
/** More than any entry settles in a second; an entry that runs out of payments ends early. */
const paymentsPerSecond = 6_000

/** Outcomes brought to payments through `settleTransaction`, against one function call per payment. */
export const settle: Workload = async (fixture) => {
  const product = await startProduct(fixture, merchantsCount)
  const limit = await startChild('settle-limit.ts', { databaseUrl: fixture.url })
  const spread = product.merchants.map(({ merchantId }) => merchantId)
  const hot = spread.slice(0, 1)

  function entry(
    name: string,
    side: { pid: number; ask(question: object): Promise<unknown> },
    make: (count: number) => Promise<string>,
    goal?: Goal,
  ): BenchEntry {
    let settling: Settling | null = null
    return {
      name,
      processes: [side.pid],
      ...(goal && { goal }),
      async prepare(seconds) {
        const count = Math.ceil(seconds * paymentsPerSecond)
        settling = { first: await make(count), count, seconds, width }
        await numbered(fixture)
      },
      async measure() {
        const measured = (await side.ask({ settling })) as Measurement
        await numbered(fixture)
        return measured
      },
    }
  }
  const ours = (name: string, merchantIds: readonly number[], goal?: Goal) =>
    entry(name, product, (count) => openPayments(fixture, merchantIds, count), goal)
  const theirs = (merchantIds: readonly number[]) =>
    entry('limit: one call each', limit, (count) => openSales(fixture, merchantIds, count))

  return {
    sections: [
      {
        title: 'settle, one merchant',
        unit: 'payments/s',
        entries: [theirs(hot), ours('settleTransaction', hot, { ratioMin: 8 })],
      },
      {
        title: `settle, ${merchantsCount} merchants`,
        unit: 'payments/s',
        entries: [theirs(spread), ours('settleTransaction', spread, { ratioMin: 1.5 })],
      },
      {
        title: 'settle, hot to spread',
        unit: 'payments/s',
        entries: [ours(`${merchantsCount} merchants`, spread), ours('one merchant', hot, { ratioMin: 0.9 })],
      },
    ],
    notes: [
      `limit: one PL/pgSQL function call per payment, 16 connections, ${width} at once, lean tables.`,
      'settleTransaction: what callbacks and checks end in; it also ends the request and feeds the counts.',
      'Numbering the events belongs to the service. Afterwards the ledger was proven.',
    ],
    async close() {
      await limit.close()
      await product.close()
      const { rows } = await fixture.owner.query('SELECT * FROM audit_ledger(true) LIMIT 5')
      if (rows.length > 0) throw new Error(`The ledger does not hold: ${JSON.stringify(rows)}`)
    },
  }
}

/** Makes payments in the product's own way, neighbours of different merchants. @returns the first id */
async function openPayments(
  fixture: BenchFixture,
  merchantIds: readonly number[],
  count: number,
): Promise<string> {
  const { rows: keys } = await fixture.owner.query<{ id: number; merchantId: number; version: number }>(
    'SELECT id, merchant_id AS "merchantId", version FROM api_key WHERE merchant_id = ANY ($1)',
    [merchantIds],
  )
  const keyOf = new Map(keys.map((key) => [key.merchantId, key]))
  const items = Array.from({ length: count }, (_, n) => {
    const merchantId = merchantIds[n % merchantIds.length] ?? 0
    const { id: apiKeyId = 0, version: apiKeyVersion = 1 } = keyOf.get(merchantId) ?? {}
    return { ...paid, merchantId, apiKeyId, apiKeyVersion, reference: randomUUID() }
  })
  let first: bigint | null = null
  for (let from = 0; from < count; from += merchantsCount) {
    const made = await collectMany(fixture.owner, items.slice(from, from + merchantsCount), 86_400_000)
    first ??= made[0]?.transactionId ?? null
  }
  return String(first ?? 0)
}

const paid = { provider: 'OperatorA', phone: '+22370110000', amount: 5_000n } as const

async function openSales(
  fixture: BenchFixture,
  merchantIds: readonly number[],
  count: number,
): Promise<string> {
  const { rows } = await fixture.owner.query<{ first: string }>(
    `WITH made AS (
       INSERT INTO limit_sale (merchant_id, amount, status, reference)
       SELECT ($1::int[])[1 + n % cardinality($1::int[])], 5000, 'pending', gen_random_uuid()
       FROM generate_series(0, $2::int - 1) AS n RETURNING id
     ) SELECT min(id) AS first FROM made`,
    [merchantIds, count],
  )
  return rows[0]?.first ?? '0'
}
