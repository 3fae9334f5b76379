import type pg from 'pg'
import { platformRecording } from '../../src/audit/audit-log.ts'
import { collectMany as runCollectMany } from '../../src/resources/transactions/collect.ts'
import type { Provider } from '../../src/shared/providers.ts'
import { makeMerchant, type TestMerchant } from './merchants.ts'

/** One item of `collect_many`, as the service sends it. */
export interface CollectItem {
  merchantId: number
  apiKeyId: number
  apiKeyVersion: number
  provider: Provider
  phone: string
  amount: bigint
  reference: string
  /** The identity under which the operator is asked; left out, a random one. */
  identity?: string
}

export interface Collected {
  outcome: 'made' | 'duplicate' | 'unauthenticated'
  transactionId: bigint | null
  requestId: bigint | null
  correlationId: string | null
  isOrphan: boolean
}

let made = 0

/** A collection of 5,000 francs by OperatorA, under a reference of its own. */
export function item(merchant: TestMerchant, more: Partial<CollectItem> = {}): CollectItem {
  return {
    merchantId: merchant.merchantId,
    apiKeyId: merchant.apiKeyId,
    apiKeyVersion: 1,
    provider: 'OperatorA',
    phone: '+22370000001',
    amount: 5_000n,
    reference: `ref-${(made += 1)}`,
    ...more,
  }
}

/** Runs `collect_many` itself. */
export async function collectMany(
  pool: pg.Pool | pg.PoolClient,
  items: readonly CollectItem[],
  firstCheckMs = 12_000,
): Promise<Collected[]> {
  const terms = { lifetimeMs: 86_400_000, fenceMs: 30_000, firstCheckMs, waits: true }
  return runCollectMany(pool, items.map(asked), terms)
}

/** What the service adds to each item of a payment. */
export function asked<Item extends { merchantId: number; apiKeyId: number; identity?: string }>(given: Item) {
  const { merchantId, apiKeyId, identity = null } = given
  const recording = platformRecording(merchantId, 'test')
  return {
    ...given,
    identity,
    request: {},
    clientAddress: null,
    allowance: null,
    recording: { ...recording, actor: `api_key:${apiKeyId}` },
  }
}

/** One collection under way. @returns its transaction and its operator request */
export async function openCollection(
  pool: pg.Pool,
  merchant: TestMerchant,
  more: Partial<CollectItem> = {},
): Promise<{ transactionId: bigint; requestId: bigint; correlationId: string }> {
  const [row] = await collectMany(pool, [item(merchant, more)])
  if (!row?.transactionId || !row.requestId || !row.correlationId)
    throw new Error(`not made: ${row?.outcome}`)
  return { transactionId: row.transactionId, requestId: row.requestId, correlationId: row.correlationId }
}

export interface SettleItem {
  id: bigint
  to: string
  source?: string
  amount?: bigint | null
  /** The one send that it tells of. */
  attempt?: number | null
}

export interface Settled {
  moved: boolean
  was: string
  status: string
  late: boolean
}

/** Runs `settle_many` itself. */
export async function settleMany(
  pool: pg.Pool | pg.PoolClient,
  items: readonly SettleItem[],
): Promise<Settled[]> {
  const none = items.map(() => null)
  const { rows } = await pool.query<Settled>(
    `SELECT moved, from_status AS was, status, late
     FROM settle_many($1, $2::transaction_status[], $3, $4, $5, $6, $7, $8::jsonb[], 3600000, NULL, $9)`,
    [
      items.map((i) => i.id),
      items.map((i) => i.to),
      items.map((i) => i.source ?? 'query'),
      items.map((i) => i.amount ?? null),
      none,
      none,
      none,
      none,
      items.map((i) => i.attempt ?? null),
    ],
  )
  return rows
}

/** Runs `reverse_many` itself. */
export async function reverseMany(pool: pg.Pool | pg.PoolClient, ids: readonly bigint[], source = 'query') {
  const { rows } = await pool.query<{ moved: boolean; status: string; shortfall: bigint | null }>(
    'SELECT moved, status, shortfall FROM reverse_many($1, $2, $3::jsonb[])',
    [ids, ids.map(() => source), ids.map(() => '{}')],
  )
  return rows
}

export interface Held {
  available: bigint
  reserved: bigint
}

export async function balanceOf(pool: pg.Pool, merchantId: number): Promise<Held> {
  const { rows } = await pool.query<Held>(
    'SELECT available, reserved FROM merchant_balance WHERE merchant_id = $1',
    [merchantId],
  )
  if (!rows[0]) throw new Error(`merchant ${merchantId} has no balance`)
  return rows[0]
}

/** What `audit_ledger` says of these merchants. */
export async function problemsOf(pool: pg.Pool, ...merchantIds: number[]): Promise<string[]> {
  const { rows } = await pool.query<{ problem: string }>(
    'SELECT problem FROM audit_ledger(true) WHERE merchant_id = ANY ($1) ORDER BY problem',
    [merchantIds],
  )
  return rows.map((row) => row.problem)
}

/** A merchant that holds `amount`. */
export async function fundedMerchant(pool: pg.Pool, amount: bigint): Promise<TestMerchant> {
  const merchant = await makeMerchant(pool)
  if (amount > 0n) await pool.query('SELECT fund_merchant($1, $2, $3)', fundOf(merchant.merchantId, amount))
  return merchant
}

function fundOf(merchantId: number, amount: bigint): unknown[] {
  return [merchantId, `funding:test-${(made += 1)}`, amount]
}

/** Rows of the events log of a merchant, in the order of their making. */
export async function eventTypes(pool: pg.Pool, merchantId: number): Promise<string[]> {
  const { rows } = await pool.query<{ type: string }>(
    'SELECT type FROM event WHERE merchant_id = $1 ORDER BY id',
    [merchantId],
  )
  return rows.map((row) => row.type)
}
