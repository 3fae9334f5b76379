import { setTimeout as sleep } from 'node:timers/promises'
import { limits } from '../../src/shared/limits.ts'
import { startChild } from './child.ts'
import { numbered } from './collect.ts'
import type { BenchFixture } from './fixture.ts'
import { openWire, quantile } from './load.ts'
import { type Product, startProduct } from './product.ts'
import type { BenchEntry, Goal, Measurement, Workload } from './rounds.ts'

/** A batch with so many is never done within a turn. */
const recipients = limits.batchRecipientsMax

/** One batch that is paid by a fast operator, against a bare loop. */
export const bulk: Workload = async (fixture) => {
  const product = await startProduct(fixture, 1)
  const { owner } = fixture
  await owner.query(
    `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
     SELECT id, 'funding:bench-' || id, 'fund', 'funding', 'available', 900000000000, now() FROM merchant`,
  )
  const limit = await startChild('bulk-limit.ts', {
    databaseUrl: fixture.url,
    operatorsUrl: product.operatorsUrl,
    callsAtOnce: limits.batchInFlightMax,
  })
  let batch = 0
  return {
    sections: [
      {
        title: `bulk, one batch of ${recipients}`,
        unit: 'recipients/s',
        entries: [
          {
            name: 'limit: calls, one UPDATE of 500',
            processes: [limit.pid],
            prepare: async () => {
              await owner.query(
                `INSERT INTO limit_recipient (phone, amount, correlation_id)
                 SELECT '+22370000001', 1000, gen_random_uuid() FROM generate_series(1, $1::int)`,
                [recipients],
              )
              await owner.query('ANALYZE limit_recipient')
            },
            measure: async (seconds) => (await limit.ask({ seconds })) as Measurement,
          },
          {
            name: 'engine',
            processes: [product.pid],
            goal: { ratioMin: 0.4 },
            prepare: async () => {
              batch = await makeDraft(fixture)
            },
            async measure(seconds) {
              const begun = performance.now()
              await owner.query(
                `SELECT process_batch(1, k.id, k.version, 'api_key:1', $1, 604800000,
                   enum_range(NULL::provider), NULL, NULL, NULL, NULL)
                 FROM api_key k WHERE k.merchant_id = 1`,
                [batch],
              )
              await sleep(seconds * 1_000)
              const operations = await paid(fixture, batch)
              const value = operations / ((performance.now() - begun) / 1_000)
              await owner.query('SELECT cancel_batch(1, $1)', [batch])
              await numbered(fixture)
              return { value, operations, p99Ms: Number.NaN }
            },
          },
        ],
      },
      {
        title: 'a draft in one call',
        unit: 'ms (median)',
        entries: [draftOf(product, 1), draftOf(product, recipients, { valueMax: 2_000 })],
      },
    ],
    notes: [
      `limit: pg and undici: ${limits.batchInFlightMax} calls at once, 500 of their answers in one UPDATE.`,
      `engine: begun, sent through the driver and its guards, settled, numbered; as many calls at once.`,
      'Both ask OperatorD of the same simulator; its processor time is not counted.',
    ],
    async close() {
      await limit.close()
      await product.close()
      const { rows } = await owner.query('SELECT * FROM audit_ledger(true) LIMIT 5')
      if (rows.length > 0) throw new Error(`The ledger does not hold: ${JSON.stringify(rows)}`)
    },
  }
}

/** `POST /bulk/batches` with so many recipients, from the first byte sent to the last one received. */
function draftOf(product: Product, count: number, goal?: Goal): BenchEntry {
  const [merchant] = product.merchants
  const people = Array.from({ length: count }, (_none, place) => ({
    name: `Awa ${place}`,
    account: '70000001',
    amount: 1_000,
    payment_method: 'OperatorD',
  }))
  const request = {
    method: 'POST',
    path: '/merchant/api/bulk/batches',
    headers: { Authorization: `Bearer ${merchant?.token}` },
    body: JSON.stringify({ recipients: people }),
  }
  return {
    name: `${count.toLocaleString('en')} recipients`,
    processes: [product.pid],
    ...(goal && { goal }),
    async measure(seconds) {
      const wire = await openWire(product.port)
      const durations: number[] = []
      const end = performance.now() + seconds * 1_000
      do {
        const sent = performance.now()
        const { status, text } = await wire.send(request)
        durations.push(performance.now() - sent)
        if (status !== 201) throw new Error(`Answered ${text}`)
      } while (performance.now() < end)
      wire.close()
      return {
        value: quantile(durations, 0.5),
        operations: durations.length,
        p99Ms: quantile(durations, 0.99),
      }
    },
  }
}

async function paid({ owner }: BenchFixture, batch: number): Promise<number> {
  const { rows } = await owner.query<{ n: number }>('SELECT succeeded_count AS n FROM batch WHERE id = $1', [
    batch,
  ])
  return rows[0]?.n ?? 0
}

async function makeDraft({ owner }: BenchFixture): Promise<number> {
  const { rows } = await owner.query<{ id: number }>(
    `SELECT made.batch_id AS id FROM api_key k, LATERAL create_batch(1, k.id, k.version, 'api_key:1', NULL,
       NULL, NULL, array_fill('Awa'::text, ARRAY[$1::int]), array_fill('+22370000001'::text, ARRAY[$1::int]),
       array_fill(1000::bigint, ARRAY[$1::int]), array_fill('OperatorD'::provider, ARRAY[$1::int])) AS made
     WHERE k.merchant_id = 1`,
    [recipients],
  )
  return rows[0]?.id ?? 0
}
