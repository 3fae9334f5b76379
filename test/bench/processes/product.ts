import { scopes } from '../../../src/identity/callers/scopes.ts'
import { startApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config/config.ts'
import type { InitiateOutcome } from '../../../src/operators/operator.ts'
import type { Operator, OperatorRegistry } from '../../../src/operators/registry.ts'
import { createMerchant } from '../../../src/resources/merchants/create.ts'
import { settleTransaction } from '../../../src/resources/transactions/settle.ts'
import { invariant } from '../../../src/shared/invariant.ts'
import { childOptions } from '../child.ts'
import { type Settling, settleAll } from '../settling.ts'

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
}

export interface ProductReady {
  port: number
  merchants: readonly { merchantId: number; token: string }[]
}

// The service as it is, on a port of its own, with merchants that are signed in.
const options = childOptions() as ProductOptions
const config = readConfig({
  PORT: '0',
  DATA_DIR: options.dataDir,
  OPERATORS_URL: options.operatorsUrl,
  LOG_LEVEL: 'silent',
  RATE_LIMIT_WRITES: '1000000000',
  RATE_LIMIT_READS: '1000000000',
  RATE_LIMIT_PUBLIC: '1000000000',
  RATE_LIMIT_OBJECTS: '1000000000',
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
  const grant = { merchantId, apiKeyId, apiKeyVersion: 1, scopes, hours: 24 }
  return { merchantId, token: (await services.access.tokens.issueToken(grant)).token }
}

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

async function answer(question: { operator?: OperatorKind; settling?: Settling }): Promise<unknown> {
  if (question.settling) return settleAll(question.settling, bring)
  services.operators = operators[question.operator ?? 'simulator']
  return 'done'
}
process.on('message', (question: object) => void answer(question).then((said) => process.send?.(said)))
process.on('disconnect', () => process.exit())
process.send?.({ port: Number(new URL(services.addresses.publicUrl).port), merchants } satisfies ProductReady)
