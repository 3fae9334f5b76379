import type pg from 'pg'
import { beginRecipients as runBeginRecipients } from '../../src/resources/batches/send.ts'
import { settleRecipients as runSettleRecipients } from '../../src/resources/batches/settle.ts'
import type { RecipientStatus } from '../../src/resources/batches/states.ts'
import type { Provider } from '../../src/shared/providers.ts'
import type { SignedInMerchant } from './merchants.ts'
import { outcomeOf, type OutcomeItem } from './money.ts'
import type { EndedDisbursement } from './money-out.ts'

type Client = pg.Pool | pg.PoolClient

/** Somebody to be paid, as the service hands them over: 1,000 francs by OperatorA. */
export interface Payee {
  name?: string
  account?: string
  amount?: bigint
  provider?: Provider
}

function columnsOf(recipients: readonly Payee[]): unknown[] {
  return [
    recipients.map(({ name }) => name ?? 'Awa'),
    recipients.map(({ account }) => account ?? '+22370000001'),
    recipients.map(({ amount }) => amount ?? 1_000n),
    recipients.map(({ provider }) => provider ?? 'OperatorA'),
  ]
}

/** So many of a kind. */
export function payees(count: number, more: Payee = {}): Payee[] {
  return Array.from({ length: count }, () => more)
}

/** Runs `create_batch` itself. @param more.retried makes one of those who failed there */
export async function createBatch(
  pool: Client,
  merchant: SignedInMerchant,
  recipients: readonly Payee[],
  more: { retried?: number; effect?: string; version?: number } = {},
): Promise<{ outcome: string; batchId: number | null } | undefined> {
  const { rows } = await pool.query<{ outcome: string; batchId: number | null }>(
    `SELECT outcome, batch_id AS "batchId"
     FROM create_batch($1, $2, $3, $4, $5, NULL, NULL, $6, $7, $8, $9::provider[], $10)`,
    [
      merchant.merchantId,
      merchant.apiKeyId,
      more.version ?? 1,
      `api_key:${merchant.apiKeyId}`,
      more.effect ?? null,
      ...columnsOf(recipients),
      more.retried ?? null,
    ],
  )
  return rows[0]
}

/** Runs `add_recipients` itself. */
export async function addRecipients(
  pool: Client,
  merchant: SignedInMerchant,
  id: number,
  recipients: readonly Payee[],
  effect: string | null = null,
): Promise<string | undefined> {
  const { merchantId, apiKeyId } = merchant
  const { rows } = await pool.query<{ outcome: string }>(
    'SELECT outcome FROM add_recipients($1, $2, 1, $3, $4, $5, $6, $7, $8, $9::provider[], 10000)',
    [merchantId, apiKeyId, `api_key:${apiKeyId}`, effect, id, ...columnsOf(recipients)],
  )
  return rows[0]?.outcome
}

export const allProviders: readonly Provider[] = ['OperatorA', 'OperatorB', 'OperatorC', 'OperatorD']

/** Runs `process_batch` itself: of no token, with no cap. */
export async function processBatch(
  pool: Client,
  merchant: SignedInMerchant,
  id: number,
  connected = allProviders,
): Promise<string | undefined> {
  const { rows } = await pool.query<{ outcome: string }>(
    `SELECT outcome
     FROM process_batch($1, $2, 1, $3, $4, 604800000, $5::provider[], NULL, NULL, NULL, NULL)`,
    [merchant.merchantId, merchant.apiKeyId, `api_key:${merchant.apiKeyId}`, id, connected],
  )
  return rows[0]?.outcome
}

/** A draft. @returns its id */
export async function openDraft(
  pool: Client,
  merchant: SignedInMerchant,
  recipients: readonly Payee[],
): Promise<number> {
  const made = await createBatch(pool, merchant, recipients)
  if (!made?.batchId) throw new Error(`not made: ${made?.outcome}`)
  return made.batchId
}

/** One under way, of which nobody was sent yet. @returns its id */
export async function openBatch(
  pool: Client,
  merchant: SignedInMerchant,
  recipients: readonly Payee[],
): Promise<number> {
  const id = await openDraft(pool, merchant, recipients)
  const outcome = await processBatch(pool, merchant, id)
  if (outcome !== 'processing') throw new Error(`not under way: ${outcome}`)
  return id
}

export interface BegunRecipient {
  recipientId: bigint
  batchId: number
  merchantId: number
  operator: Provider
  requestId: bigint
  correlationId: string
}

/** A call under way. */
interface Call {
  batchId: number
  operator: Provider
}

interface Look {
  open?: readonly Provider[]
  room?: number
  busy?: readonly Call[]
  own?: readonly string[]
  callMs?: number
}

/**
 * Runs `begin_recipients` itself: of each of `open` so many; of a batch 8 at most, with those in `busy`, and
 * with what others than `own` sent less than `callMs` ago.
 */
export async function beginRecipients(pool: Client, more: Look = {}): Promise<BegunRecipient[]> {
  const { open = allProviders, room = 32, busy = [], own = [], callMs = 0 } = more
  return runBeginRecipients(pool, {
    open,
    rooms: open.map(() => room),
    busyBatches: busy.map(({ batchId }) => batchId),
    busyOperators: busy.map(({ operator }) => operator),
    batchMax: 8,
    fenceMs: 30_000,
    firstCheckMs: 12_000,
    own: own.map(BigInt),
    callMs,
  })
}

/** Runs `settle_recipients` itself. */
export async function settleRecipients(
  pool: Client,
  items: readonly OutcomeItem[],
): Promise<EndedDisbursement[]> {
  const outcomes = items.map((given) => ({
    recipientId: given.id,
    toStatus: given.to as RecipientStatus,
    ...outcomeOf({ reason: given.to === 'failed' ? 'RECIPIENT_NOT_FOUND' : null, ...given }),
  }))
  return (await runSettleRecipients(pool, outcomes, {})).map(({ moved, status }) => ({ moved, status }))
}

/** Runs `cancel_batch` itself; null where the merchant has no such batch. */
export async function cancelBatch(pool: Client, merchantId: number, id: number) {
  const { rows } = await pool.query<{ moved: boolean; was: string; status: string }>(
    'SELECT moved, was, status FROM cancel_batch($1, $2)',
    [merchantId, id],
  )
  return rows[0] ?? null
}

/** The recipients of a batch in their order. */
export async function recipientsOf(
  pool: Client,
  id: number,
): Promise<{ id: bigint; status: string; amount: bigint }[]> {
  const { rows } = await pool.query<{ id: bigint; status: string; amount: bigint }>(
    'SELECT id, status, amount FROM batch_recipient WHERE batch_id = $1 ORDER BY id',
    [id],
  )
  return rows
}
