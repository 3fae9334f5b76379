import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { appendRecipients } from '../../src/resources/batches/add-recipients.ts'
import { cancelOpenBatch } from '../../src/resources/batches/cancel.ts'
import { insertBatch } from '../../src/resources/batches/create.ts'
import { processDraft } from '../../src/resources/batches/process.ts'
import { beginRecipients as runBeginRecipients } from '../../src/resources/batches/send.ts'
import { settleRecipients as runSettleRecipients } from '../../src/resources/batches/settle.ts'
import type { RecipientStatus } from '../../src/resources/batches/states.ts'
import type { Provider } from '../../src/shared/providers.ts'
import type { SignedInMerchant } from './merchants.ts'
import { outcomeOf, type OutcomeItem } from './money.ts'
import type { EndedDisbursement } from './money-out.ts'

type Client = pg.Pool | pg.PoolClient

/** The merchant and the key of a call. */
export type BulkMerchant = Pick<SignedInMerchant, 'merchantId' | 'apiKeyId'>

/** A recipient as the service passes it to the function: 1,000 francs by OperatorA. */
export interface Payee {
  name?: string
  account?: string
  amount?: bigint
  provider?: Provider
}

function columnsOf(recipients: readonly Payee[]) {
  return {
    names: recipients.map(({ name }) => name ?? 'Awa'),
    accounts: recipients.map(({ account }) => account ?? '+22370000001'),
    amounts: recipients.map(({ amount }) => amount ?? 1_000n),
    methods: recipients.map(({ provider }) => provider ?? 'OperatorA'),
  }
}

/** The key of a merchant, in the version that it was made in. */
function credentialOf({ merchantId, apiKeyId }: BulkMerchant) {
  return { merchant: merchantId, credential: apiKeyId, credentialVersion: 1 }
}

/** Makes so many recipients of a kind. */
export function payees(count: number, more: Payee = {}): Payee[] {
  return Array.from({ length: count }, () => more)
}

/**
 * Runs `create_batch` itself.
 * @param more.retried a batch; the new one takes over its failed recipients
 * @param more.seed the seed of the recipients' identities; absent: a random one
 */
export async function createBatch(
  pool: Client,
  merchant: BulkMerchant,
  recipients: readonly Payee[],
  more: { retried?: number; effect?: string; version?: number; seed?: string } = {},
): Promise<{ outcome: string; batchId: number | null } | undefined> {
  const [row] = await insertBatch(pool, {
    ...credentialOf(merchant),
    credentialVersion: more.version ?? 1,
    maker: `api_key:${merchant.apiKeyId}`,
    operationId: more.effect,
    title: null,
    method: null,
    ...columnsOf(recipients),
    retried: more.retried,
    seed: more.seed ?? randomUUID(),
  })
  return row
}

/** Runs `add_recipients` itself. */
export async function addRecipients(
  pool: Client,
  merchant: BulkMerchant,
  id: number,
  recipients: readonly Payee[],
  effect: string | null = null,
): Promise<string | undefined> {
  const [row] = await appendRecipients(pool, {
    ...credentialOf(merchant),
    adder: `api_key:${merchant.apiKeyId}`,
    operationId: effect,
    batch: id,
    ...columnsOf(recipients),
    countMax: 10_000,
    seed: randomUUID(),
  })
  return row?.outcome
}

export const allProviders: readonly Provider[] = ['OperatorA', 'OperatorB', 'OperatorC', 'OperatorD']

/** Runs `process_batch` itself, without a token and without limits of a key. */
export async function processBatch(
  pool: Client,
  merchant: BulkMerchant,
  id: number,
  connected = allProviders,
): Promise<string | undefined> {
  const [row] = await processDraft(pool, {
    ...credentialOf(merchant),
    asker: `api_key:${merchant.apiKeyId}`,
    batch: id,
    approvalMs: 604_800_000,
    connected,
    paymentMax: null,
    operators: null,
    token: null,
    dayMax: null,
    address: '',
  })
  return row?.outcome
}

/** Makes a draft. @returns its id */
export async function openDraft(
  pool: Client,
  merchant: BulkMerchant,
  recipients: readonly Payee[],
): Promise<number> {
  const made = await createBatch(pool, merchant, recipients)
  if (!made?.batchId) throw new Error(`not made: ${made?.outcome}`)
  return made.batchId
}

/** Makes a batch under way of which no recipient was sent yet. @returns its id */
export async function openBatch(
  pool: Client,
  merchant: BulkMerchant,
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

/** A call to an operator under way. */
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
 * Runs `begin_recipients` itself: takes `room` recipients for each operator in `open`, 8 per batch at most.
 * Counted are the calls in `busy`, and those that other processes than `own` sent less than `callMs` ago.
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
export async function cancelBatch(pool: Client, merchant: BulkMerchant, id: number) {
  const [row] = await cancelOpenBatch(pool, {
    ...credentialOf(merchant),
    batch: id,
    becomes: null,
    why: {},
    address: '',
  })
  return row ?? null
}

/** Cancels every batch that has not ended, also those of merchants that are no longer active. */
export async function cancelAllBatches(pool: pg.Pool): Promise<void> {
  await pool.query('SELECT cancel_batch(merchant_id, id) FROM batch ORDER BY id')
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
