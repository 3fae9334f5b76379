import type pg from 'pg'
import { platformRecording } from '../../src/audit/audit-log.ts'
import type { SqlConnection } from '../../src/database/sql-function.ts'
import { cancelPendingPayout } from '../../src/resources/payouts/cancel.ts'
import { createPayouts as runCreatePayouts } from '../../src/resources/payouts/create.ts'
import { beginPayouts as runBeginPayouts } from '../../src/resources/payouts/send.ts'
import { settlePayouts as runSettlePayouts } from '../../src/resources/payouts/settle.ts'
import type { PayoutStatus } from '../../src/resources/payouts/states.ts'
import { reverseDisbursements as runReverse } from '../../src/resources/disbursements/reverse.ts'
import { depositMany as runDepositMany } from '../../src/resources/transactions/disburse.ts'
import { settleDeposits as runSettleDeposits } from '../../src/resources/transactions/settle-deposit.ts'
import type { TransactionStatus } from '../../src/resources/transactions/states.ts'
import type { Provider } from '../../src/shared/providers.ts'
import type { SignedInMerchant } from './merchants.ts'
import {
  asked,
  outcomeOf,
  type OutcomeItem,
  type PaymentItem,
  paymentItem,
  type UnderWay,
  underWay,
} from './money.ts'

/** One item of `deposit_many`, as the service passes it. */
export interface DepositItem extends PaymentItem {
  /** The collection that the deposit refunds. */
  refundOf: bigint | null
}

export interface Deposited {
  outcome:
    | 'made'
    | 'unauthenticated'
    | 'duplicate'
    | 'differs'
    | 'not_refundable'
    | 'too_large'
    | 'halted'
    | 'short'
    | 'again'
  transactionId: bigint | null
  requestId: bigint | null
  correlationId: string | null
  createdAt: Date | null
  isOrphan: boolean
}

/** A deposit of 1,000 francs by OperatorA, under a reference of its own. */
export function depositItem(merchant: SignedInMerchant, more: Partial<DepositItem> = {}): DepositItem {
  return { ...paymentItem(merchant, 1_000n, 'out'), refundOf: null, ...more }
}

/** Runs `deposit_many` itself. */
export async function depositMany(pool: SqlConnection, items: readonly DepositItem[]): Promise<Deposited[]> {
  const sent = items.map(({ refundOf, ...item }) => ({ ...asked(item), refundOfId: refundOf }))
  const terms = { fenceMs: 30_000, firstCheckMs: 12_000, approvalMs: sevenDaysMs, waits: true }
  return (await runDepositMany(pool, sent, terms)) as Deposited[]
}

const sevenDaysMs = 604_800_000

/** Makes a deposit under way with its money reserved. @returns its transaction and its operator request */
export async function openDeposit(
  pool: pg.Pool,
  merchant: SignedInMerchant,
  more: Partial<DepositItem> = {},
): Promise<UnderWay> {
  return underWay((await depositMany(pool, [depositItem(merchant, more)]))[0])
}

export interface EndedDisbursement {
  moved: boolean
  status: string | null
}

/** Runs `settle_deposits` itself. */
export async function settleDeposits(
  pool: SqlConnection,
  items: readonly OutcomeItem[],
): Promise<EndedDisbursement[]> {
  const outcomes = items.map((given) => ({
    transactionId: given.id,
    toStatus: given.to as TransactionStatus,
    ...outcomeOf(given),
  }))
  return (await runSettleDeposits(pool, outcomes, {})).map(({ moved, status }) => ({ moved, status }))
}

/** One item of `create_payouts`, as the service passes it. */
export interface PayoutItem extends PaymentItem {
  /** Null: at once. */
  scheduledAt: Date | null
  beneficiaryId: number | null
  beneficiaryName: string | null
}

export interface PaidOut {
  outcome: 'made' | 'unauthenticated' | 'duplicate' | 'differs' | 'halted' | 'short'
  payoutId: bigint | null
}

/** A payout of 1,000 francs by OperatorA, at once, under a reference of its own. */
export function payoutItem(merchant: SignedInMerchant, more: Partial<PayoutItem> = {}): PayoutItem {
  const nobody = { scheduledAt: null, beneficiaryId: null, beneficiaryName: null }
  return { ...paymentItem(merchant, 1_000n, 'out'), ...nobody, ...more }
}

/** Runs `create_payouts` itself; approvals expire after seven days. */
export async function createPayouts(pool: SqlConnection, items: readonly PayoutItem[]): Promise<PaidOut[]> {
  return runCreatePayouts(pool, items.map(asked), { approvalMs: sevenDaysMs, waits: true })
}

/** Makes a payout that waits. @returns its id */
export async function openPayout(
  pool: pg.Pool,
  merchant: SignedInMerchant,
  more: Partial<PayoutItem> = {},
): Promise<bigint> {
  const [row] = await createPayouts(pool, [payoutItem(merchant, more)])
  if (!row?.payoutId) throw new Error(`not made: ${row?.outcome}`)
  return row.payoutId
}

export interface Begun {
  outcome: 'begun' | 'short' | 'asked'
  payoutId: bigint
  requestId: bigint | null
  merchantId: number
  amount: bigint
  phone: string
}

/**
 * Makes a payout that keeps money reserved as long as a test needs it, because it waits for approval.
 * @param owner the pool that may turn on approvals for this merchant
 */
export async function reserveForApproval(
  owner: pg.Pool,
  merchantId: number,
  amount: bigint,
): Promise<bigint> {
  await owner.query('UPDATE merchant SET payouts_require_approval = true WHERE id = $1', [merchantId])
  const { rows } = await owner.query<{ apiKeyId: number; apiKeyVersion: number }>(
    'SELECT id AS "apiKeyId", version AS "apiKeyVersion" FROM api_key WHERE merchant_id = $1 LIMIT 1',
    [merchantId],
  )
  const item = payoutItem({ merchantId, apiKeyId: 0 } as SignedInMerchant, { amount, ...rows[0] })
  const [row] = await createPayouts(owner, [item])
  if (!row?.payoutId) throw new Error(`not made: ${row?.outcome}`)
  return row.payoutId
}

/** Approves a payout by the tables alone, where it asks for approval. */
export async function approveByHand(owner: pg.Pool, id: bigint): Promise<void> {
  // A member must have made the payout: it could not be approved if its maker were unknown.
  await owner.query(
    `SET LOCAL session_replication_role = replica;
     WITH maker AS (
       INSERT INTO team_member (merchant_id, name, email, role, status)
       SELECT merchant_id, 'Maker', 'maker' || id || '@shop.test', 'owner', 'active'
       FROM payout WHERE id = ${id} RETURNING id)
     UPDATE payout p SET maker_member_id = maker.id FROM maker
     WHERE p.id = ${id} AND p.approval_digest IS NOT NULL`,
  )
  await owner.query(
    `WITH member AS (
       INSERT INTO team_member (merchant_id, name, email, role, status, joined_at, approver_since)
       SELECT merchant_id, 'Awa', 'awa' || id || '@shop.test', 'finance', 'active', now(),
         now() - interval '2 days'
       FROM payout WHERE id = $1
       RETURNING id, role)
     INSERT INTO approval_verdict (merchant_id, payout_id, member_id, role, verdict, digest, created_at)
     SELECT p.merchant_id, p.id, m.id, m.role, 'approved', p.approval_digest, now() FROM payout p, member m
     WHERE p.id = $1 AND p.approval_digest IS NOT NULL`,
    [id],
  )
}

/** Reserves money under an origin, by the table alone. */
export async function reserveByHand(owner: pg.Pool, merchantId: number, origin: string, amount: bigint) {
  await owner.query(
    `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
     VALUES ($1, $2, 'reserve', 'available', 'reserved', $3, now())`,
    [merchantId, origin, amount],
  )
}

/** Runs `begin_payouts` itself. */
export async function beginPayouts(
  pool: SqlConnection,
  operator: Provider = 'OperatorA',
  take = 32,
): Promise<Begun[]> {
  return runBeginPayouts(pool, { operator, take, fenceMs: 30_000, firstCheckMs: 12_000 })
}

/** Runs `settle_payouts` itself. */
export async function settlePayouts(
  pool: SqlConnection,
  items: readonly OutcomeItem[],
): Promise<EndedDisbursement[]> {
  const outcomes = items.map((given) => ({
    payoutId: given.id,
    toStatus: given.to as PayoutStatus,
    ...outcomeOf(given),
  }))
  return (await runSettlePayouts(pool, outcomes, {})).map(({ moved, status }) => ({ moved, status }))
}

/** Runs `cancel_payout` itself; null where the merchant has no such payout. */
export async function cancelPayout(
  pool: SqlConnection,
  { merchantId, apiKeyId }: SignedInMerchant,
  id: bigint,
): Promise<EndedDisbursement | null> {
  const [row] = await cancelPendingPayout(pool, {
    merchant: merchantId,
    payout: id,
    recording: platformRecording(merchantId, 'test'),
    credential: apiKeyId,
    credentialVersion: 1,
    address: '',
  })
  return row ? { moved: row.moved === true, status: row.status } : null
}

/** Cancels every payout that waits, also those of merchants that are no longer active. */
export async function cancelAllPayouts(pool: pg.Pool): Promise<void> {
  await pool.query(
    `SELECT cancel_payout(merchant_id, id,
       ROW(merchant_id, 'platform', NULL, NULL, 'terminal', 'test')::audit_recording) FROM payout`,
  )
}

/** Runs `reverse_disbursements` itself. @returns which of the origins moved */
export async function reverseDisbursements(
  pool: SqlConnection,
  origins: readonly string[],
): Promise<boolean[]> {
  const rows = await runReverse(
    pool,
    origins.map((origin) => ({ origin, evidence: {} })),
    {},
  )
  return rows.map(({ moved }) => moved)
}

/** The entries of an origin in their order, `post reserved > clearing_operator_a 1000`. */
export async function entriesOf(pool: pg.Pool, origin: string): Promise<string[]> {
  const { rows } = await pool.query<{ line: string }>(
    `SELECT step || ' ' || debit || ' > ' || credit || ' ' || amount AS line FROM ledger_entry
     WHERE origin = $1 ORDER BY id`,
    [origin],
  )
  return rows.map(({ line }) => line)
}

/** Reads the request of a deposit or payout: its state, and whether the operator is asked again. */
export async function requestOf(
  pool: pg.Pool,
  column: 'transaction_id' | 'payout_id',
  id: bigint,
): Promise<Record<string, unknown>[]> {
  const { rows } = await pool.query<Record<string, unknown>>(
    `SELECT kind, provider, amount, phone, state, next_check_at IS NOT NULL AS asked FROM operator_request
     WHERE ${column} = $1`,
    [id],
  )
  return rows
}

/** Counts the rows of all tables that money out writes. */
export async function writtenRows(pool: pg.Pool): Promise<unknown> {
  const { rows } = await pool.query<object>(
    `SELECT (SELECT count(*) FROM transaction) AS transactions, (SELECT count(*) FROM payout) AS payouts,
       (SELECT count(*) FROM ledger_entry) AS entries, (SELECT count(*) FROM event) AS events,
       (SELECT count(*) FROM operator_request) AS requests`,
  )
  return rows[0]
}

/** Reads a balance again and again until it is stopped: the available amount must never leave its bounds. */
export function watchAvailable(pool: pg.Pool, merchantId: number): () => Promise<bigint[]> {
  let watching = true
  const seen: bigint[] = []
  const watcher = (async () => {
    while (watching) {
      const { rows } = await pool.query<{ available: bigint }>(
        'SELECT available FROM merchant_balance WHERE merchant_id = $1',
        [merchantId],
      )
      seen.push(rows[0]?.available ?? -1n)
    }
  })()
  return async () => {
    watching = false
    await watcher
    return seen
  }
}
