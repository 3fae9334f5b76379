import { setTimeout as sleep } from 'node:timers/promises'
import { openMasterSecret } from '../../src/identity/secrets/secrets.ts'
import { encryptWebhookSecret } from '../../src/resources/webhooks/secrets.ts'
import { newWebhookSecret } from '../../src/resources/webhooks/sign.ts'
import { compare, engine, loop } from './compare.ts'
import type { BenchFixture } from './fixture.ts'
import type { Product } from './product.ts'
import type { Measurement } from './rounds.ts'

/** More than are delivered in a second; what is left is given up before the next turn. */
const eventsPerSecond = 8_000
const queuedCount = 1_000

/** Events that wait for one endpoint, against a bare loop that posts and notes each. */
export const webhooks = compare({ merchants: 1 }, async ({ fixture, product, start }) => {
  const receiver = await start({ workload: 'receiver' })
  const url = `http://127.0.0.1:${receiver.port}/hook`
  const limit = await start({ workload: 'webhooks', url })
  const queue = await openQueue(fixture, product, url)
  return {
    sections: [
      {
        title: 'webhooks from the job on, one endpoint',
        unit: 'deliveries/s',
        entries: [
          loop('limit: sign, post, note', limit),
          engine(
            'lane',
            product,
            { ratioMin: 0.4 },
            {
              prepare: (seconds) => queue.queue(Math.ceil(seconds * eventsPerSecond)),
              begin: () => queue.begin(),
              done: () => queue.delivered(),
              halt: () => queue.end(),
            },
          ),
        ],
      },
      {
        title: `webhooks from the job on, ${queuedCount} that wait`,
        unit: 's until all are there',
        entries: [
          {
            name: 'limit: sign, post, note',
            processes: [limit.pid],
            async measure() {
              const { value, ...more } = (await limit.ask({ count: queuedCount })) as Measurement
              return { ...more, value: queuedCount / value }
            },
          },
          {
            name: 'lane',
            processes: [product.pid],
            goal: { valueMax: 5 },
            prepare: () => queue.queue(queuedCount),
            async measure() {
              const begun = performance.now()
              await queue.begin()
              while ((await queue.delivered()) < queuedCount) await sleep(pollMs)
              const value = (performance.now() - begun) / 1_000
              await queue.end()
              return { value, operations: queuedCount, p99Ms: Number.NaN }
            },
          },
        ],
      },
    ],
    notes: [
      'limit: undici and pg: each event is signed and posted, its attempt is a row and a commit.',
      'lane: read in order, signed, posted to the judged address, noted in groups; begins with the job.',
      'Both post to the same receiver, one after another; its processor time is not counted.',
    ],
  }
})

const pollMs = 5

/** Adds an endpoint to those of a merchant. */
export async function addEndpoint(
  { owner }: BenchFixture,
  { dataDir }: Product,
  { id, merchantId, url, isActive }: { id: number; merchantId: number; url: string; isActive: boolean },
): Promise<void> {
  const master = await openMasterSecret(null, dataDir)
  const secret = encryptWebhookSecret(master, { merchantId, id }, newWebhookSecret())
  await owner.query(
    `INSERT INTO webhook_endpoint (id, merchant_id, slot, url, events, secret_encrypted, is_active,
       delivered_to)
     VALUES ($1, $2, (SELECT count(*) + 1 FROM webhook_endpoint WHERE merchant_id = $2), $3,
       '{payment_received}', $4, $5, 0)`,
    [id, merchantId, url, secret, isActive],
  )
}

/** Opens an endpoint of the first merchant; its events wait until a turn begins. */
async function openQueue(fixture: BenchFixture, product: Product, url: string) {
  const { owner } = fixture
  const merchantId = product.merchants[0]?.merchantId ?? 0
  const id = 1
  await addEndpoint(fixture, product, { id, merchantId, url, isActive: false })
  let queued = 0
  return {
    async queue(count: number): Promise<void> {
      queued = count
      await owner.query(
        `SELECT append_events(array_agg(($1::int, 'payment_received', jsonb_build_object('transaction_id', n,
           'reference', 'R-' || n, 'amount', 5000, 'currency', 'XOF', 'payment_method',
           'OperatorA'))::new_event), now())
         FROM generate_series(1, $2::int) AS n`,
        [merchantId, count],
      )
      for (let more = true; more; ) {
        const { rows } = await owner.query<{ more: boolean }>('SELECT make_missing_deliveries(10000) AS more')
        more = rows[0]?.more === true
      }
      await owner.query('ANALYZE webhook_delivery')
    },
    async begin(): Promise<void> {
      await owner.query('UPDATE webhook_endpoint SET is_active = true')
      await owner.query('SELECT resume_webhook($1)', [id])
    },
    /** The deliveries of the queued events. */
    async delivered(): Promise<number> {
      const { rows } = await owner.query<{ n: string }>(
        `SELECT count(*) AS n FROM webhook_delivery WHERE status = 'pending' AND next_attempt_at IS NULL`,
      )
      return queued - Number(rows[0]?.n)
    },
    /** Gives up the rest, once the results of the deliveries under way are recorded. */
    async end(): Promise<void> {
      await owner.query('UPDATE webhook_endpoint SET is_active = false, due_at = NULL')
      await sleep(200)
      await owner.query(
        `UPDATE webhook_delivery SET status = 'dead', next_attempt_at = NULL, ended_at = now()
         WHERE status = 'pending'`,
      )
    },
  }
}
