import type { OperatorKey } from './model.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** The properties of one operator: protocol, notifications, fees and the client's credentials. */
export interface OperatorProfile {
  readonly key: OperatorKey
  readonly name: string
  readonly protocol: 'gsma' | 'checkout'
  readonly basePath: string
  readonly notification: 'callback' | 'polling' | 'webhook'
  /** True if disbursements and reversals answer with their final state. */
  readonly synchronous: boolean
  /** True if an unanswered prompt can be withdrawn (version 1.2 of the standard). */
  readonly canCancel: boolean
  /** The error field of a failed request state: the standard's schema and its portal text differ. */
  readonly errorField: 'error' | 'errorReference'
  /** The pause before each repetition of a callback that was not accepted. */
  readonly retryGapsMs: readonly number[]
  /** How long a customer may take to answer. */
  readonly promptMs: number
  /**
   * The fees, charged to our float separately and rounded up to a franc; the customer pays only the amount.
   */
  readonly fees: { readonly collectPerMille: bigint; readonly disbursePerMille: bigint }
  readonly credentials: { readonly clientId: string; readonly clientSecret: string; readonly apiKey: string }
}

const noFees = { collectPerMille: 0n, disbursePerMille: 0n }

/** The four operators; A, C and D have the three flows of the GSMA protocol, B is a hosted checkout. */
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
    // Three days in total.
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

/** The webhook secret. It is public intentionally: it protects no real money. */
export const sandboxWebhookSecret = 'sandbox-webhook-secret-b'

/** The name of our own account at the operators. */
export const poolIdentifier = 'POOL'

/** Returns the operator's fee for an amount, rounded up to a franc; it is charged to our float. */
export function feeFor(profile: OperatorProfile, kind: 'collect' | 'disburse', amount: bigint): bigint {
  const perMille = kind === 'collect' ? profile.fees.collectPerMille : profile.fees.disbursePerMille
  return (amount * perMille + 999n) / 1_000n
}

function credentials(key: OperatorKey): OperatorProfile['credentials'] {
  return { clientId: `sandbox-${key}`, clientSecret: `sandbox-secret-${key}`, apiKey: `sandbox-key-${key}` }
}
