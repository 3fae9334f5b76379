import type { OperatorKey } from './model.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** How one operator speaks, tells outcomes, charges and knows its client. */
export interface OperatorProfile {
  readonly key: OperatorKey
  readonly name: string
  readonly protocol: 'gsma' | 'checkout'
  readonly basePath: string
  readonly notification: 'callback' | 'polling' | 'webhook'
  /** Disbursements and reversals answer with their final state. */
  readonly synchronous: boolean
  /** An unanswered prompt can be withdrawn (version 1.2 of the standard). */
  readonly canCancel: boolean
  /** The field of a failed request state: the schema and the portal text of the standard differ. */
  readonly errorField: 'error' | 'errorReference'
  /** Pauses before each repeat of a callback that was not taken. */
  readonly retryGapsMs: readonly number[]
  /** How long a customer may take to answer. */
  readonly promptMs: number
  /** Charged to our float apart, rounded up to a franc; the customer pays the amount alone. */
  readonly fees: { readonly collectPerMille: bigint; readonly disbursePerMille: bigint }
  readonly credentials: { readonly clientId: string; readonly clientSecret: string; readonly apiKey: string }
}

const noFees = { collectPerMille: 0n, disbursePerMille: 0n }

/** The four operators; A, C and D show the three flows of the GSMA protocol, B is a hosted checkout. */
export const operators: Readonly<Record<OperatorKey, OperatorProfile>> = {
  a: {
    key: 'a',
    name: 'OperatorA',
    protocol: 'gsma',
    basePath: '/op-a/v1.2/mm',
    notification: 'callback',
    synchronous: false,
    canCancel: true,
    errorField: 'error',
    retryGapsMs: [10 * second, 60 * second, 600 * second],
    promptMs: 5 * minute,
    fees: noFees,
    credentials: credentials('a'),
  },
  b: {
    key: 'b',
    name: 'OperatorB',
    protocol: 'checkout',
    basePath: '/op-b/v1',
    notification: 'webhook',
    synchronous: true,
    canCancel: true,
    errorField: 'error',
    // Three days in all.
    retryGapsMs: [
      10 * second,
      minute,
      5 * minute,
      30 * minute,
      2 * hour,
      6 * hour,
      12 * hour,
      24 * hour,
      27 * hour,
    ],
    promptMs: 30 * minute,
    fees: { collectPerMille: 10n, disbursePerMille: 10n },
    credentials: credentials('b'),
  },
  c: {
    key: 'c',
    name: 'OperatorC',
    protocol: 'gsma',
    basePath: '/op-c/v1.2/mm',
    notification: 'polling',
    synchronous: false,
    canCancel: true,
    errorField: 'error',
    retryGapsMs: [],
    promptMs: 5 * minute,
    fees: noFees,
    credentials: credentials('c'),
  },
  d: {
    key: 'd',
    name: 'OperatorD',
    protocol: 'gsma',
    basePath: '/op-d/v1.1/mm',
    notification: 'callback',
    synchronous: true,
    canCancel: false,
    errorField: 'errorReference',
    // Called once, never again.
    retryGapsMs: [],
    promptMs: 5 * minute,
    fees: noFees,
    credentials: credentials('d'),
  },
}

/** Public by intent: nothing real is behind them. */
export const sandboxWebhookSecret = 'sandbox-webhook-secret-b'

/** The name of our own account at the operators. */
export const poolIdentifier = 'POOL'

/** What the operator charges our float for an amount, rounded up to a franc. */
export function feeFor(profile: OperatorProfile, kind: 'collect' | 'disburse', amount: bigint): bigint {
  const perMille = kind === 'collect' ? profile.fees.collectPerMille : profile.fees.disbursePerMille
  return (amount * perMille + 999n) / 1_000n
}

function credentials(key: OperatorKey): OperatorProfile['credentials'] {
  return { clientId: `sandbox-${key}`, clientSecret: `sandbox-secret-${key}`, apiKey: `sandbox-key-${key}` }
}
