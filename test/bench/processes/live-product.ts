import pg from 'pg'
import { startApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config/config.ts'
import { createMerchant } from '../../../src/resources/merchants/create.ts'
import { invariant } from '../../../src/shared/invariant.ts'
import { childOptions } from '../child.ts'
import { actAtRate, type Pace } from '../pace.ts'

export interface LiveOptions {
  databaseUrl: string
  dataDir: string
  /** How many readers each merchant is to have. */
  readers: readonly number[]
}

export interface LiveReady {
  port: number
  merchants: readonly { merchantId: number; tokens: readonly string[] }[]
}

/** The questions that the process answers. */
export type LiveQuestion =
  /** Answered with the number of streams that are open. */
  | { streamsOf: number }
  /**
   * Writes an event; answered with the moment before that, or the one at which the service hears of it, in
   * nanoseconds of the system's clock.
   */
  | { eventOf: number; from: 'insert' | 'notification' }
  /** Writes events at a rate, for each merchant in turn; answered with the moment before each. */
  | { eventsOf: readonly number[]; pace: Pace }

// The service as it is, with merchants that have tokens for all their readers.
const options = childOptions() as LiveOptions
const config = readConfig({
  PORT: '0',
  DATA_DIR: options.dataDir,
  OPERATORS_URL: 'http://127.0.0.1:9',
  LOG_LEVEL: 'silent',
})
const { services } = await startApp(config, { connectionString: options.databaseUrl })
const owner = new pg.Client({ connectionString: options.databaseUrl })
await owner.connect()

/** A token may have twenty streams; a reader that reconnects may be counted twice for a moment. */
const readersPerToken = 16
const merchants = []
for (const readers of options.readers) {
  const { merchantId, apiKey } = await createMerchant(services, { name: `Shop with ${readers} readers` })
  const { rows } = await owner.query<{ id: number }>('SELECT id FROM api_key WHERE key = $1', [apiKey])
  const apiKeyId = rows[0]?.id
  invariant(apiKeyId, 'a new merchant has a key')
  const grant = { merchantId, apiKeyId, apiKeyVersion: 1, scopes: ['balance'] as const, hours: 24 }
  const tokens = Array.from({ length: Math.ceil(readers / readersPerToken) }, () =>
    services.access.tokens.issueToken(grant),
  )
  merchants.push({ merchantId, tokens: (await Promise.all(tokens)).map(({ token }) => token) })
}

async function writeEvent(merchantId: number): Promise<number> {
  const began = Number(process.hrtime.bigint())
  await owner.query({
    name: 'event',
    text: `SELECT append_events(ARRAY[($1::int, 'payment_received', $2::jsonb)::new_event], now())`,
    values: [
      merchantId,
      {
        transaction_id: 1,
        reference: 'order-2026-000123',
        amount: 5_000,
        currency: 'XOF',
        payment_method: 'OperatorA',
        customer_phone: '+22370000001',
        status: 'success',
        previous_status: 'pending',
      },
    ],
  })
  services.announcer.announce(merchantId)
  return began
}

let onHeard: (() => void) | null = null
const notify = services.feed.notify.bind(services.feed)
services.feed.notify = (named) => {
  onHeard?.()
  notify(named)
}

async function heardOfEvent(merchantId: number): Promise<number> {
  const heard = new Promise<number>((resolve) => {
    onHeard = () => {
      onHeard = null
      resolve(Number(process.hrtime.bigint()))
    }
  })
  await writeEvent(merchantId)
  return heard
}

process.on('message', (question: LiveQuestion) => {
  if ('streamsOf' in question) {
    process.send?.(services.streams.get(`merchant:${question.streamsOf}`) ?? 0)
    return
  }
  if ('eventsOf' in question) {
    // One after the other: a connection runs one statement at a time, and the events must keep their order.
    let written: Promise<unknown> = Promise.resolve()
    const { eventsOf, pace } = question
    const act = (n: number) => {
      written = written.then(() => writeEvent(eventsOf[n % eventsOf.length] ?? 0))
    }
    void actAtRate(pace, act).then((moments) => process.send?.(moments))
    return
  }
  const write = question.from === 'insert' ? writeEvent : heardOfEvent
  void write(question.eventOf).then((began) => process.send?.([began]))
})
process.on('disconnect', () => process.exit())
const port = Number(new URL(services.addresses.publicUrl).port)
process.send?.({ port, merchants } satisfies LiveReady)
