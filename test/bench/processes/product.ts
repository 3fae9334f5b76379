import { scopes } from '../../../src/identity/callers/scopes.ts'
import { openPool } from '../../../src/database/client.ts'
import { startAnnouncer } from '../../../src/events/announcer.ts'
import { startApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config/config.ts'
import type { InitiateOutcome } from '../../../src/operators/operator.ts'
import type { Operator, OperatorRegistry } from '../../../src/operators/registry.ts'
import { createMerchant } from '../../../src/resources/merchants/create.ts'
import { settleTransaction } from '../../../src/resources/transactions/settle.ts'
import { invariant } from '../../../src/shared/invariant.ts'
import { childOptions } from '../child.ts'
import { type Settling, settleAll } from '../load.ts'
import { actAtRate, type Pace } from '../pace.ts'

/** The operator that answers the service's calls. */
export type OperatorKind =
  /** The simulator, over HTTP. */
  | 'simulator'
  /** A driver in this process that accepts at once. */
  | 'accepts'
  /** A driver that is never reached: the answer leaves right after the commit of the payment. */
  | 'absent'

export interface ProductOptions {
  databaseUrl: string
  dataDir: string
  operatorsUrl: string
  merchants: number
  inFlightMax: number | null
  /** How many readers each merchant is to have; with them the service keeps all its limits. */
  readers?: readonly number[]
}

export interface ProductReady {
  port: number
  /** A token may have twenty streams: several where there are readers. */
  merchants: readonly { merchantId: number; token: string; tokens: readonly string[] }[]
}

/** The questions that the process answers. */
export type ProductQuestion =
  | { operator: OperatorKind }
  | { settling: Settling }
  /** Answered with the number of streams that are open. */
  | { streamsOf: number }
  /**
   * Writes an event; answered with the moment before that, or the one at which the service hears of it, in
   * nanoseconds of the system's clock.
   */
  | { eventOf: number; from: 'insert' | 'notification' }
  /** Writes events at a rate, for each merchant in turn; answered with the moment before each. */
  | { eventsOf: readonly number[]; pace: Pace }

// The service as it is, on a port of its own, with merchants that are signed in.
const options = childOptions() as ProductOptions
const config = readConfig({
  PORT: '0',
  DATA_DIR: options.dataDir,
  OPERATORS_URL: options.operatorsUrl,
  LOG_LEVEL: 'silent',
  ...(!options.readers && {
    RATE_LIMIT_WRITES: '1000000000',
    RATE_LIMIT_READS: '1000000000',
    RATE_LIMIT_PUBLIC: '1000000000',
    RATE_LIMIT_OBJECTS: '1000000000',
  }),
  ...(options.inFlightMax !== null && { IN_FLIGHT_MAX: String(options.inFlightMax) }),
})
const { services } = await startApp(config, { connectionString: options.databaseUrl })
async function openMerchant(number: number): Promise<ProductReady['merchants'][number]> {
  const { merchantId, apiKey } = await createMerchant(services, { name: `Shop ${number}` })
  const { rows } = await services.database.pool.query<{ id: number }>(
    'SELECT id FROM api_key WHERE key = $1',
    [apiKey],
  )
  const apiKeyId = rows[0]?.id
  invariant(apiKeyId, 'a new merchant has a key')
  const granted = options.readers ? (['balance'] as const) : scopes
  const grant = { merchantId, apiKeyId, apiKeyVersion: 1, scopes: granted, hours: 24 }
  const count = Math.ceil((options.readers?.[number - 1] ?? 1) / readersPerToken)
  const issued = await Promise.all(
    Array.from({ length: count }, () => services.access.tokens.issueToken(grant)),
  )
  const tokens = issued.map(({ token }) => token)
  return { merchantId, token: tokens[0] ?? '', tokens }
}

/** A reader that reconnects may be counted twice for a moment. */
const readersPerToken = 16
const merchants: ProductReady['merchants'][number][] = []
const atOnce = 8
while (merchants.length < options.merchants) {
  const count = Math.min(atOnce, options.merchants - merchants.length)
  const numbers = Array.from({ length: count }, (_none, place) => merchants.length + place + 1)
  merchants.push(...(await Promise.all(numbers.map(openMerchant))))
}

const real = services.operators
const pending = async () => ({ kind: 'pending' }) as const
/** Made once: its stack must not count. */
const absent = new Error('no operator')

function playing(collect: Operator['collect']): OperatorRegistry {
  return {
    ...real,
    find(provider) {
      const operator = real.find(provider)
      return operator && { ...operator, collect, query: pending, canStart: () => ({ ok: true }) }
    },
  }
}

const operators: Record<OperatorKind, OperatorRegistry> = {
  simulator: real,
  accepts: playing(
    async ({ handle }): Promise<InitiateOutcome> => ({
      kind: 'accepted',
      duplicate: false,
      handle,
      action: { type: 'push' },
      notify: 'callback',
    }),
  ),
  absent: playing(() => Promise.reject(absent)),
}
async function bring(transactionId: bigint): Promise<boolean> {
  const evidence = {
    operatorRef: `R${transactionId}`,
    amount: 5_000n,
    settledAt: new Date(),
    source: 'query',
    digest: 'd',
  } as const
  const paid = { status: 'success', source: 'query', evidence, watchMs: null } as const
  return (await settleTransaction(services, transactionId, paid)).moved
}

// The service may not append events by itself, so these sessions are the owner's, with their own announcer.
const owner = openPool({ connectionString: options.databaseUrl }, 2, null, () => {})
if (options.readers) startAnnouncer(owner, services.log)

async function writeEvent(merchantId: number): Promise<number> {
  const began = Number(process.hrtime.bigint())
  const data = {
    transaction_id: 1,
    reference: 'order-2026-000123',
    amount: 5_000,
    currency: 'XOF',
    payment_method: 'OperatorA',
    customer_phone: '+22370000001',
    status: 'success',
    previous_status: 'pending',
  }
  await owner.query({
    name: 'event',
    text: `SELECT append_events(ARRAY[($1::int, 'payment_received', $2::jsonb)::new_event], now())`,
    values: [merchantId, data],
  })
  return began
}

let onHeard: (() => void) | null = null
const notify = services.feed.notify.bind(services.feed)
if (options.readers)
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

async function answer(question: ProductQuestion): Promise<unknown> {
  if ('settling' in question) return settleAll(question.settling, bring)
  if ('streamsOf' in question) return services.streams.get(`merchant:${question.streamsOf}`) ?? 0
  if ('eventOf' in question)
    return [await (question.from === 'insert' ? writeEvent : heardOfEvent)(question.eventOf)]
  if ('eventsOf' in question) {
    // One after the other: a connection runs one statement at a time, and the events must keep their order.
    let written: Promise<unknown> = Promise.resolve()
    const { eventsOf, pace } = question
    return actAtRate(pace, (n) => {
      written = written.then(() => writeEvent(eventsOf[n % eventsOf.length] ?? 0))
    })
  }
  services.operators = operators[question.operator]
  return 'done'
}
process.on('message', (question: ProductQuestion) => {
  void answer(question).then((said) => process.send?.(said))
})
process.on('disconnect', () => process.exit())
process.send?.({ port: Number(new URL(services.addresses.publicUrl).port), merchants } satisfies ProductReady)
