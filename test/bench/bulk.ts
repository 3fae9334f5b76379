import { limits } from '../../src/shared/limits.ts'
import { type BulkMerchant, cancelBatch, openDraft, payees, processBatch } from '../kit/money-bulk.ts'
import { bearer, compare, engine, latency, loop } from './compare.ts'
import type { BenchFixture } from './fixture.ts'
import type { Product } from './product.ts'
import type { BenchEntry, Goal } from './rounds.ts'

/** A batch with so many is never done within a turn. */
const recipients = limits.batchRecipientsMax

/** One batch that is paid by a fast operator, against a bare loop. */
export const bulk = compare({ merchants: 1, books: 'funded' }, async ({ fixture, product, start }) => {
  const { owner } = fixture
  const payer = await firstMerchant(fixture)
  const limit = await start({ workload: 'bulk', callsAtOnce: limits.batchInFlightMax })
  let batch = 0
  const theirs = loop('limit: calls, one UPDATE of 500', limit, async () => {
    await owner.query(
      `INSERT INTO limit_recipient (phone, amount, correlation_id)
       SELECT '+22370000001', 1000, gen_random_uuid() FROM generate_series(1, $1::int)`,
      [recipients],
    )
    await owner.query('ANALYZE limit_recipient')
  })
  const ours = engine(
    'engine',
    product,
    { ratioMin: 0.4 },
    {
      async prepare() {
        batch = await openDraft(owner, payer, payees(recipients, { provider: 'OperatorD' }))
      },
      begin: () => processBatch(owner, payer, batch),
      done: () => paid(fixture, batch),
      halt: () => cancelBatch(owner, payer, batch),
    },
  )
  return {
    sections: [
      {
        title: `bulk from the job on, one batch of ${recipients}`,
        unit: 'recipients/s',
        entries: [theirs, ours],
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
  }
})

/** `POST /bulk/batches` with so many recipients, from the first byte sent to the last one received. */
function draftOf(product: Product, count: number, goal?: Goal): BenchEntry {
  const [merchant = { token: '' }] = product.merchants
  const people = Array.from({ length: count }, (_none, place) => ({
    name: `Awa ${place}`,
    account: '70000001',
    amount: 1_000,
    payment_method: 'OperatorD',
  }))
  const request = {
    method: 'POST',
    path: '/merchant/api/bulk/batches',
    headers: bearer(merchant),
    body: JSON.stringify({ recipients: people }),
  }
  return latency(`${count.toLocaleString('en')} recipients`, product, { status: 201, request }, goal)
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
