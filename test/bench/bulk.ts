import { setTimeout as sleep } from 'node:timers/promises'
import { limits } from '../../src/shared/limits.ts'
import { type BulkMerchant, cancelBatch, openDraft, payees, processBatch } from '../kit/money-bulk.ts'
import { startChild } from './child.ts'
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
  const payer = await firstMerchant(fixture)
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
        title: `bulk from the job on, one batch of ${recipients}`,
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
              batch = await openDraft(owner, payer, payees(recipients, { provider: 'OperatorD' }))
            },
            async measure(seconds) {
              const begun = performance.now()
              await processBatch(owner, payer, batch)
              await sleep(seconds * 1_000)
              const operations = await paid(fixture, batch)
              const value = operations / ((performance.now() - begun) / 1_000)
              await cancelBatch(owner, payer, batch)
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
      `engine: begun, sent through the driver and its guards, settled; as many calls at once.`,
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

/** The first merchant of the product, by its key. */
async function firstMerchant({ owner }: BenchFixture): Promise<BulkMerchant> {
  const { rows } = await owner.query<BulkMerchant>(
    'SELECT merchant_id AS "merchantId", id AS "apiKeyId" FROM api_key WHERE merchant_id = 1 AND version = 1',
  )
  if (!rows[0]) throw new Error('The first merchant has no key.')
  return rows[0]
}
