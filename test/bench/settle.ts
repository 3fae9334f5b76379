import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { simulatorControl } from '../../src/operators/sandbox.ts'
import { Secret } from '../../src/shared/secret.ts'
import { collectMany } from '../kit/money.ts'
import { compare } from './compare.ts'
import type { BenchFixture } from './fixture.ts'
import { openWire, repeat, type Settling } from './load.ts'
import type { Product } from './product.ts'
import type { BenchEntry, Goal, Measurement } from './rounds.ts'

const merchantsCount = 1_000
/** Two statements of 64 under way: with fewer the cost of a full statement could not be measured. */
const width = 128
/** More than any entry settles in a second; an entry that runs out of payments ends early. */
const paymentsPerSecond = 6_000
/** About as many as callbacks settle in a second: a turn ends when all are settled. */
const callbacksPerSecond = 400

/** Payments settled by callbacks over HTTP, and in the process alone, against one function call each. */
export const settle = compare({ merchants: merchantsCount, books: 'proven' }, async (sides) => {
  const { fixture, product } = sides
  const limit = await sides.start({ workload: 'settle' })
  const spread = product.merchants.map(({ merchantId }) => merchantId)
  const hot = spread.slice(0, 1)

  function entry(
    name: string,
    side: { pid: number; ask(question: { settling: Settling }): Promise<unknown> },
    make: (count: number) => Promise<string>,
    goal?: Goal,
  ): BenchEntry {
    let settling: Settling = { first: '0', count: 0, seconds: 0, width }
    return {
      name,
      processes: [side.pid],
      goal,
      async prepare(seconds) {
        const count = Math.ceil(seconds * paymentsPerSecond)
        settling = { first: await make(count), count, seconds, width }
      },
      measure: async () => (await side.ask({ settling })) as Measurement,
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
        entries: [
          theirs(hot),
          byCallback(fixture, product, hot),
          ours('without HTTP: settleTransaction', hot, { ratioMin: 8 }),
        ],
      },
      {
        title: `settle, ${merchantsCount} merchants`,
        unit: 'payments/s',
        entries: [
          theirs(spread),
          byCallback(fixture, product, spread),
          ours('without HTTP: settleTransaction', spread, { ratioMin: 1.5 }),
        ],
      },
      {
        title: 'settleTransaction, hot to spread',
        unit: 'payments/s',
        entries: [ours(`${merchantsCount} merchants`, spread), ours('one merchant', hot, { ratioMin: 0.9 })],
      },
    ],
    notes: [
      `limit: one PL/pgSQL function call per payment, 16 connections, ${width} at once, lean tables.`,
      'callback over HTTP: customers of many payments confirm at once; until all are settled.',
      'The simulator calls back, the service asks it, and settles; p99: until a payment is settled.',
      'settleTransaction: what callbacks and checks end in; it also ends the request and feeds the counts.',
      'Numbering the events belongs to the service. Afterwards the ledger was proven.',
    ],
  }
})

/** Payments whose customers confirm together: the simulator's time is moved to the moment of all. */
function byCallback(fixture: BenchFixture, product: Product, merchantIds: readonly number[]): BenchEntry {
  const tokens = product.merchants.flatMap(({ merchantId, token }) =>
    merchantIds.includes(merchantId) ? [token] : [],
  )
  const control = simulatorControl(product.operatorsUrl, new Secret('sandbox-control'))
  let last = 0n
  return {
    name: 'callback over HTTP',
    processes: [product.pid],
    async prepare(seconds) {
      last = await lastPayment(fixture)
      await payLater(product.port, tokens, Math.ceil(seconds * callbacksPerSecond))
    },
    async measure() {
      const confirmed = Date.now()
      await control.advanceClock(confirmsAfterMs)
      await settled(fixture, last)
      const { rows } = await fixture.owner.query<{ count: number; lastMs: number; p99Ms: number }>(
        `SELECT count(*)::int AS count, max(ms)::float AS "lastMs",
           percentile_disc(0.99) WITHIN GROUP (ORDER BY ms)::float AS "p99Ms"
         FROM transaction, LATERAL (SELECT extract(epoch FROM settled_at) * 1000 - $2 AS ms) AS took
         WHERE id > $1 AND status = 'success'`,
        [last, confirmed],
      )
      const { count = 0, lastMs = 0, p99Ms = 0 } = rows[0] ?? {}
      return { value: (count * 1_000) / lastMs, operations: count, p99Ms }
    },
  }
}

/** The customer 70006000 confirms after 60 seconds (see docs/guide/test-numbers.md). */
const laterPayer = '70006000'
const confirmsAfterMs = 60_000
const payersAtOnce = 32

async function payLater(port: number, tokens: readonly string[], count: number): Promise<void> {
  const wires = await Promise.all(Array.from({ length: payersAtOnce }, () => openWire(port)))
  await repeat({ count, width: payersAtOnce }, async (sent, place) => {
    const payment = { amount: 5_000, customer_phone: laterPayer, payment_method: 'OperatorA' }
    const answer = await wires[place]?.send({
      method: 'POST',
      path: '/merchant/api/pay',
      headers: { Authorization: `Bearer ${tokens[sent % tokens.length]}` },
      body: JSON.stringify({ ...payment, reference: randomUUID() }),
    })
    if (answer?.status !== 202) throw new Error(`Answered ${answer?.status}: ${answer?.text}`)
  })
  for (const wire of wires) wire.close()
}

async function lastPayment({ owner }: BenchFixture): Promise<bigint> {
  const { rows } = await owner.query<{ id: string }>('SELECT coalesce(max(id), 0) AS id FROM transaction')
  return BigInt(rows[0]?.id ?? 0)
}

/** Waits until no payment after this one is pending. */
async function settled({ owner }: BenchFixture, after: bigint): Promise<void> {
  for (;;) {
    const { rows } = await owner.query(
      `SELECT FROM transaction WHERE id > $1 AND status = 'pending' LIMIT 1`,
      [after],
    )
    if (rows.length === 0) return
    await sleep(pollMs)
  }
}

const pollMs = 50

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
