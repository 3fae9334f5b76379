import type pg from 'pg'
import { platformRecording } from '../../src/audit/audit-log.ts'
import type { ArgumentsOf, SqlConnection } from '../../src/database/sql-function.ts'
import { fund } from '../../src/ledger/post.ts'
import type { FailureReason } from '../../src/operators/failure-reasons.ts'
import type { RequestOutcome, outcomeTypes } from '../../src/requests/outcome.ts'
import { collectMany as runCollectMany } from '../../src/resources/transactions/collect.ts'
import { reverseMany as runReverseMany } from '../../src/resources/transactions/reverse.ts'
import { settleMany as runSettleMany } from '../../src/resources/transactions/settle.ts'
import type { TransactionStatus } from '../../src/resources/transactions/states.ts'
import type { Provider } from '../../src/shared/providers.ts'
import { makeMerchant, type SignedInMerchant } from './merchants.ts'

/** The input of each kind of payment; for collections, one item of `collect_many`. */
export interface PaymentItem {
  merchantId: number
  apiKeyId: number
  apiKeyVersion: number
  provider: Provider
  phone: string
  amount: bigint
  reference: string
  /** The identity under which the operator is asked; absent: a random one. */
  identity?: string
}

export interface Collected {
  outcome: 'made' | 'duplicate' | 'differs' | 'unauthenticated'
  transactionId: bigint | null
  requestId: bigint | null
  correlationId: string | null
  isOrphan: boolean
}

let made = 0

/** A payment by OperatorA, under a reference of its own that begins with `prefix`. */
export function paymentItem(merchant: SignedInMerchant, amount: bigint, prefix: string): PaymentItem {
  return {
    merchantId: merchant.merchantId,
    apiKeyId: merchant.apiKeyId,
    apiKeyVersion: 1,
    provider: 'OperatorA',
    phone: '+22370000001',
    amount,
    reference: `${prefix}-${(made += 1)}`,
  }
}

/** A collection of 5,000 francs by OperatorA, under a reference of its own. */
export function item(merchant: SignedInMerchant, more: Partial<PaymentItem> = {}): PaymentItem {
  return { ...paymentItem(merchant, 5_000n, 'ref'), ...more }
}

/** Runs `collect_many` itself. */
export async function collectMany(
  pool: SqlConnection,
  items: readonly PaymentItem[],
  firstCheckMs = 12_000,
): Promise<Collected[]> {
  const terms = { lifetimeMs: 86_400_000, fenceMs: 30_000, firstCheckMs, waits: true }
  return runCollectMany(pool, items.map(asked), terms)
}

/** The fields that the service adds to each payment item. */
export function asked<Item extends { merchantId: number; apiKeyId: number; identity?: string }>(given: Item) {
  const { merchantId, apiKeyId, identity = null } = given
  const recording = platformRecording(merchantId, 'test')
  return {
    ...given,
    identity,
    request: {},
    clientAddress: null,
    dailyLimit: null,
    recording: { ...recording, actor: `api_key:${apiKeyId}` },
  }
}

/** A transaction under way, with its request. */
export interface UnderWay {
  transactionId: bigint
  requestId: bigint
  correlationId: string
}

/** @throws Error where no transaction with a request was made */
export function underWay(
  row: ({ outcome: string } & { [Name in keyof UnderWay]: UnderWay[Name] | null }) | undefined,
): UnderWay {
  if (!row?.transactionId || !row.requestId || !row.correlationId)
    throw new Error(`not made: ${row?.outcome}`)
  return { transactionId: row.transactionId, requestId: row.requestId, correlationId: row.correlationId }
}

/** One collection under way. @returns its transaction and its operator request */
export async function openCollection(
  pool: pg.Pool,
  merchant: SignedInMerchant,
  more: Partial<PaymentItem> = {},
): Promise<UnderWay> {
  return underWay((await collectMany(pool, [item(merchant, more)]))[0])
}

/** The outcome of one payment, as the functions that settle take it. */
export interface OutcomeItem {
  id: bigint
  to: string
  /** Absent: `query`. */
  source?: string
  amount?: bigint | null
  reason?: string | null
  /** How long the operator is asked afterwards whether it reversed the payment. */
  watchMs?: number | null
  /** The send that this outcome is about, where it is about one. */
  attempt?: number | null
}

/** The arguments that all functions that settle share. */
export function outcomeOf(given: OutcomeItem): ArgumentsOf<typeof outcomeTypes> {
  return {
    source: (given.source ?? 'query') as RequestOutcome['source'],
    amount: given.amount,
    operatorReference: null,
    reason: given.reason as FailureReason | null | undefined,
    message: null,
    evidence: {},
    reversalCheckMs: given.watchMs,
    attempt: given.attempt,
  }
}

export interface SettledPayment {
  moved: boolean
  was: string
  status: string
  late: boolean
}

/** Runs `settle_many` itself. */
export async function settleMany(
  pool: SqlConnection,
  items: readonly OutcomeItem[],
): Promise<SettledPayment[]> {
  const outcomes = items.map((given) => ({
    transactionId: given.id,
    toStatus: given.to as RequestOutcome['status'],
    ...outcomeOf(given),
  }))
  const rows = await runSettleMany(pool, outcomes, { lateCheckMs: 3_600_000 })
  return rows.map(({ moved, fromStatus: was, status, late }) => ({ moved, was, status, late }))
}

/** Runs `reverse_many` itself. */
export async function reverseMany(
  pool: SqlConnection,
  ids: readonly bigint[],
  source = 'query',
): Promise<{ moved: boolean; status: TransactionStatus; shortfall: bigint | null }[]> {
  const reversals = ids.map((transactionId) => ({ transactionId, source, evidence: {} }))
  const rows = await runReverseMany(pool, reversals, {})
  return rows.map(({ moved, status, shortfall }) => ({ moved, status, shortfall }))
}

export interface HeldBalance {
  available: bigint
  reserved: bigint
}

export async function balanceOf(pool: pg.Pool, merchantId: number): Promise<HeldBalance> {
  const { rows } = await pool.query<HeldBalance>(
    'SELECT available, reserved FROM merchant_balance WHERE merchant_id = $1',
    [merchantId],
  )
  if (!rows[0]) throw new Error(`merchant ${merchantId} has no balance`)
  return rows[0]
}

/** The problems that `audit_ledger` finds for these merchants. */
export async function problemsOf(pool: pg.Pool, ...merchantIds: number[]): Promise<string[]> {
  const { rows } = await pool.query<{ problem: string }>(
    'SELECT problem FROM audit_ledger(true) WHERE merchant_id = ANY ($1) ORDER BY problem',
    [merchantIds],
  )
  return rows.map((row) => row.problem)
}

/** Makes a merchant with a balance of `amount`. */
export async function fundedMerchant(pool: pg.Pool, amount: bigint): Promise<SignedInMerchant> {
  const merchant = await makeMerchant(pool)
  if (amount > 0n) await fundMerchant(pool, merchant.merchantId, amount)
  return merchant
}

/** Adds `amount` to a merchant's balance at each call. */
export async function fundMerchant(pool: SqlConnection, merchantId: number, amount: bigint): Promise<void> {
  await fund(pool, { merchant: merchantId, origin: `funding:test-${(made += 1)}`, amount })
}

/** The event types of a merchant, in the order of their making. */
export async function eventTypes(pool: pg.Pool, merchantId: number): Promise<string[]> {
  const { rows } = await pool.query<{ type: string }>(
    'SELECT type FROM event WHERE merchant_id = $1 ORDER BY id',
    [merchantId],
  )
  return rows.map((row) => row.type)
}
