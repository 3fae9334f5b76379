import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import type { MasterSecret } from '../../../src/identity/secrets/secrets.ts'
import { events } from '../../../src/events/catalogue.ts'
import { encryptWebhookSecret } from '../../../src/resources/webhooks/secrets.ts'
import { newWebhookSecret } from '../../../src/resources/webhooks/sign.ts'
import type { TestDatabase } from '../database.ts'

/** One call that a receiver got. */
export interface ReceivedCall {
  id: string
  event: string
  sequence: number
  /** Milliseconds since the receiver began. */
  atMs: number
}

export interface QueueReceiver {
  url: string
  /** All calls, in the order of their arrival. */
  calls: ReceivedCall[]
  /** The calls that were answered with 2xx. */
  taken: ReceivedCall[]
}

/** The answer of a receiver: a status, or a function that writes the answer itself. */
type Answer = number | ((response: ServerResponse) => void)

/** Starts a receiver on a port of its own, until the test ends. */
export async function receive(
  answer: (call: ReceivedCall, nth: number) => Answer = () => 204,
): Promise<QueueReceiver> {
  const [calls, taken]: [ReceivedCall[], ReceivedCall[]] = [[], []]
  const begun = performance.now()
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { id, event, sequence } = JSON.parse(Buffer.concat(chunks).toString()) as ReceivedCall
      const call = { id, event, sequence, atMs: performance.now() - begun }
      const answered = answer(call, calls.push(call))
      if (typeof answered === 'function') return answered(response)
      if (answered < 300) taken.push(call)
      response.writeHead(answered).end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, calls, taken }
}

/** Registers an endpoint for events of these types, all where none are named. @returns its id */
export async function addEndpoint(
  { owner }: TestDatabase,
  master: MasterSecret,
  to: { merchantId: number; url: string; types?: readonly string[] },
): Promise<number> {
  const { merchantId, url, types = Object.keys(events) } = to
  const drawn = await owner.query<{ id: bigint }>(`SELECT nextval('webhook_endpoint_id_seq') AS id`)
  const id = Number(drawn.rows[0]?.id)
  await owner.query(
    `INSERT INTO webhook_endpoint (id, merchant_id, slot, url, events, secret_encrypted, delivered_to)
     VALUES ($1, $2, (SELECT count(*) + 1 FROM webhook_endpoint WHERE merchant_id = $2), $3, $4, $5, 0)`,
    [id, merchantId, url, types, encryptWebhookSecret(master, { merchantId, id }, newWebhookSecret())],
  )
  return id
}

/** Enables an endpoint again. */
export async function enable({ owner }: TestDatabase, id: number): Promise<void> {
  await owner.query(
    `UPDATE webhook_endpoint SET is_active = true, failure_count = 0, disabled_at = NULL, paused_until = NULL
     WHERE id = $1`,
    [id],
  )
  await owner.query('SELECT resume_webhook($1)', [id])
}

/** Emits so many events of a merchant into the log. */
export async function happen(
  { owner }: TestDatabase,
  merchantId: number,
  count: number,
  type = 'payment_received',
): Promise<void> {
  await owner.query(
    `SELECT append_events(array_agg(
       ($1, $3, jsonb_build_object('transaction_id', n, 'amount', 5000))::new_event ORDER BY n),
       service_now())
     FROM generate_series(1, $2) AS n`,
    [merchantId, count, type],
  )
  await owner.query('SELECT announce_events($1, 100000)', [[merchantId]])
}

/** Reads the state of an endpoint, and its deliveries by status. */
export async function stateOf({ owner }: TestDatabase, id: number) {
  const { rows } = await owner.query<{
    isActive: boolean
    failures: number
    pending: number
    delivered: number
    dead: number
    attempts: number
    due: boolean | null
  }>(
    `SELECT w.is_active AS "isActive", w.failure_count AS failures, w.due_at <= service_now() AS due,
       count(d.*) FILTER (WHERE d.status = 'pending')::int AS pending,
       count(d.*) FILTER (WHERE d.status = 'delivered')::int AS delivered,
       count(d.*) FILTER (WHERE d.status = 'dead')::int AS dead,
       (SELECT count(*)::int FROM webhook_attempt a JOIN webhook_delivery o ON o.id = a.delivery_id
         WHERE o.endpoint_id = w.id) AS attempts
     FROM webhook_endpoint w LEFT JOIN webhook_delivery d ON d.endpoint_id = w.id
     WHERE w.id = $1 GROUP BY w.id`,
    [id],
  )
  return rows[0]
}

/** 1, 2, 3, ... to `last`. */
export function upTo(last: number): number[] {
  return Array.from({ length: last }, (_, n) => n + 1)
}
