import { createHmac, randomBytes } from 'node:crypto'
import pg from 'pg'
import { Agent } from 'undici'
import { childOptions } from '../child.ts'
import { quantile } from '../load.ts'

// The limit of `webhooks`: a bare loop over undici. Each event is made into a body, signed as the service
// signs it, posted, and its attempt is a row. Nothing is looked up, and nothing else is kept.
const { databaseUrl, url } = childOptions() as { databaseUrl: string; url: string }
const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 })
await pool.query(`
  CREATE TABLE limit_webhook_attempt (
    id bigserial PRIMARY KEY, event_id bigint NOT NULL, status_code smallint, duration_ms int NOT NULL,
    answer text NOT NULL, at timestamptz(3) NOT NULL)`)
const { origin, pathname } = new URL(url)
const agent = new Agent({ pipelining: 1 })
const [secret, key] = [`whsec_${randomBytes(32).toString('base64')}`, randomBytes(32)]
let sent = 0

async function deliver(): Promise<void> {
  sent += 1
  const at = new Date()
  const data = { transaction_id: sent, reference: `R-${sent}`, amount: 5_000, currency: 'XOF' }
  const event = { id: `evt_${sent}`, event: 'payment_received', data, timestamp: at.toISOString() }
  const body = Buffer.from(JSON.stringify({ ...event, merchant_id: 1, sequence: sent }))
  const seconds = String(Math.floor(at.getTime() / 1_000))
  const standard = createHmac('sha256', key).update(`evt_${sent}.${seconds}.`).update(body).digest('base64')
  const begun = performance.now()
  const answer = await agent.request({
    origin,
    path: pathname,
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-service-event': 'payment_received',
      'x-service-signature': createHmac('sha256', secret).update(body).digest('hex'),
      'webhook-id': `evt_${sent}`,
      'webhook-timestamp': seconds,
      'webhook-signature': `v1,${standard}`,
    },
    body,
  })
  const text = await answer.body.text()
  await pool.query({
    name: 'note',
    text: `INSERT INTO limit_webhook_attempt (event_id, status_code, duration_ms, answer, at)
      VALUES ($1, $2, $3, $4, $5)`,
    values: [sent, answer.statusCode, Math.round(performance.now() - begun), text, at],
  })
}

/** For so long, or so many. */
async function run({ seconds = Infinity, count = Infinity }): Promise<object> {
  const durations: number[] = []
  const begun = performance.now()
  while (durations.length < count && performance.now() - begun < seconds * 1_000) {
    const at = performance.now()
    await deliver()
    durations.push(performance.now() - at)
  }
  const tookS = (performance.now() - begun) / 1_000
  return { tookS, operations: durations.length, p99Ms: quantile(durations, 0.99) }
}

process.on('message', (wish: { seconds?: number; count?: number }) => {
  void run(wish).then((said) => process.send?.(said))
})
process.on('disconnect', () => process.exit())
process.send?.({})
