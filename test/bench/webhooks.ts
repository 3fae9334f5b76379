import { setTimeout as sleep } from 'node:timers/promises'
import { openMasterSecret } from '../../src/identity/secrets/secrets.ts'
import { encryptWebhookSecret } from '../../src/resources/webhooks/secrets.ts'
import { newWebhookSecret } from '../../src/resources/webhooks/sign.ts'
import { startChild } from './child.ts'
import type { BenchFixture } from './fixture.ts'
import { type Product, startProduct } from './product.ts'
import type { Workload } from './rounds.ts'

/** More than are delivered in a second; what is left is given up before the next turn. */
const eventsPerSecond = 8_000
const queuedCount = 1_000

interface LimitTook {
  tookS: number
  operations: number
  p99Ms: number
}

/** Events that wait for one endpoint, against a bare loop that posts and notes each. */
export const webhooks: Workload = async (fixture) => {
  const product = await startProduct(fixture, 1)
  const receiver = await startChild<{ url: string }>('webhooks-receiver.ts', {})
  const { url } = receiver.ready
  const limit = await startChild('webhooks-limit.ts', { databaseUrl: fixture.url, url })
  const endpointQueue = await openQueue(fixture, product, url)
  const limitProcesses = [limit.pid]
  const queueProcesses = [product.pid]
  return {
    sections: [
      {
        title: 'webhooks from the job on, one endpoint',
        unit: 'deliveries/s',
        entries: [
          {
            name: 'limit: sign, post, note',
            processes: limitProcesses,
            async measure(seconds) {
              const { tookS, operations, p99Ms } = (await limit.ask({ seconds })) as LimitTook
              return { value: operations / tookS, operations, p99Ms }
            },
          },
          {
            name: 'lane',
            processes: queueProcesses,
            goal: { ratioMin: 0.4 },
            prepare: (seconds) => endpointQueue.queue(Math.ceil(seconds * eventsPerSecond)),
            async measure(seconds) {
              const begun = performance.now()
              await endpointQueue.begin()
              await sleep(seconds * 1_000)
              const operations = await endpointQueue.delivered()
              const value = operations / ((performance.now() - begun) / 1_000)
              await endpointQueue.end()
              return { value, operations, p99Ms: Number.NaN }
            },
          },
        ],
      },
      {
        title: `webhooks from the job on, ${queuedCount} that wait`,
        unit: 's until all are there',
        entries: [
          {
            name: 'limit: sign, post, note',
            processes: limitProcesses,
            async measure() {
              const { tookS, operations, p99Ms } = (await limit.ask({ count: queuedCount })) as LimitTook
              return { value: tookS, operations, p99Ms }
            },
          },
          {
            name: 'lane',
            processes: queueProcesses,
            goal: { valueMax: 5 },
            prepare: () => endpointQueue.queue(queuedCount),
            async measure() {
              const begun = performance.now()
              await endpointQueue.begin()
              while ((await endpointQueue.delivered()) < queuedCount) await sleep(pollMs)
              const value = (performance.now() - begun) / 1_000
              await endpointQueue.end()
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
    async close() {
      await limit.close()
      await product.close()
      await receiver.close()
    },
  }
}

const pollMs = 5

/** Opens an endpoint of the first merchant; its events wait until a turn begins. */
async function openQueue({ owner }: BenchFixture, { merchants, dataDir }: Product, url: string) {
  const merchantId = merchants[0]?.merchantId ?? 0
  const id = 1
  const master = await openMasterSecret(null, dataDir)
  await owner.query(
    `INSERT INTO webhook_endpoint (id, merchant_id, slot, url, events, secret_encrypted, is_active,
       delivered_to)
     VALUES ($1, $2, 1, $3, '{payment_received}', $4, false, 0)`,
    [id, merchantId, url, encryptWebhookSecret(master, { merchantId, id }, newWebhookSecret())],
  )
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
