import { randomBytes } from 'node:crypto'
import type { Pool } from 'pg'
import { z } from 'zod'
import { actorOf } from '../../access/actor.ts'
import { type Context, shareFlight } from '../../context.ts'
import { shareStatement } from '../../database/batch.ts'
import type { OpenRequest } from '../../operators/requests.ts'
import { DomainError } from '../../shared/errors.ts'
import {
  amount,
  currencyField,
  email,
  invalidInput,
  phone,
  provider,
  readInput,
  reference,
  text,
  webAddress,
} from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import type { Xof } from '../../shared/money.ts'
import type { Provider } from '../../shared/providers.ts'
import { deadlineIn, type Sent, sendRequest } from '../settlement.ts'
import type { TransactionStatus } from './states.ts'

/** What a collection takes (specification: POST /pay). */
export const collectInput = z.object({
  amount: amount({ min: limits.collectAmountMinXof, max: limits.amountMaxXof }),
  customerPhone: phone,
  paymentMethod: provider,
  currency: currencyField.nullish(),
  customerEmail: email.nullish(),
  reference: reference.nullish(),
  description: text({ max: limits.descriptionLengthMax }).nullish(),
  returnUrl: webAddress.nullish(),
  cancelUrl: webAddress.nullish(),
})
export type CollectInput = z.input<typeof collectInput>

/** The payment initiation result (specification). */
export interface Initiation {
  transactionId: bigint
  reference: string
  amount: Xof
  paymentMethod: Provider
  status: TransactionStatus
  /** Hosted page of a checkout operator. */
  paymentUrl: string | null
  failureReason: string | null
  failureMessage: string | null
  initiatedAt: Date
}

/**
 * Asks a customer for money. Records the payment and the intent to ask, commits, and only then asks the
 * operator: by a prompt on the customer's phone, or a hosted page.
 * @param raw.amount whole XOF, 100 to 1,000,000
 * @returns the initiation, `pending`, or already `success` where the operator settles at once
 * @throws DomainError INVALID_INPUT, DUPLICATE_REFERENCE (with the existing transaction),
 *   OPERATOR_UNAVAILABLE (nothing
 * recorded), PAYMENT_REFUSED (recorded as failed; `detail.initiation`), OVERLOADED
 * @see specification: POST /pay
 */
export async function collect(ctx: Context, raw: CollectInput): Promise<Initiation> {
  const actor = actorOf(ctx)
  const input = readInput(collectInput, raw)
  const operator = ctx.operators.find(input.paymentMethod)
  if (!operator) throw invalidInput([{ field: 'paymentMethod', message: 'is not connected to this service' }])
  const item: Item = {
    merchantId: actor.merchantId,
    apiKeyId: actor.apiKeyId,
    apiKeyVersion: actor.apiKeyVersion,
    provider: input.paymentMethod,
    phone: input.customerPhone,
    amount: input.amount,
    reference: input.reference ?? `mp_${ctx.effect?.id ?? randomBytes(16).toString('hex')}`,
    request: requestData(input),
  }
  const start = operator.canStart('collect')
  if (!start.ok) {
    // Whoever repeats a request that was taken must not hear that nothing was recorded.
    const existing = (input.reference || ctx.effect?.isResumed) && (await findExisting(ctx, item))
    if (existing) return repeated(ctx, item, existing)
    throw new DomainError('OPERATOR_UNAVAILABLE', undefined, {
      retryAfterS: Math.ceil((start.retryAfterMs ?? 1_000) / 1_000),
    })
  }

  const deadline = deadlineIn(limits.collectDeadlineMs)
  const made = await ctx.batches.run(collectMany, item)
  // The loser of a race for a reference reads in a second statement: by then the winner has committed.
  if (made.outcome === 'duplicate') return repeated(ctx, item, await findExisting(ctx, item))
  if (made.outcome === 'unauthenticated') throw await notAllowed(ctx, item)
  ctx.sequencer.nudge()

  const sent = await sendOnce(ctx, openRequest(item, made), deadline)
  const initiation: Initiation = {
    transactionId: made.transactionId,
    reference: item.reference,
    amount: item.amount,
    paymentMethod: item.provider,
    status: sent.status,
    paymentUrl: sent.paymentUrl,
    failureReason: sent.refusal?.reason ?? null,
    failureMessage: sent.refusal?.message ?? null,
    initiatedAt: made.createdAt,
  }
  return answered(initiation, sent.refusal?.words)
}

/** @throws DomainError PAYMENT_REFUSED */
function answered(initiation: Initiation, words: string | undefined): Initiation {
  if (initiation.status === 'failed') throw new DomainError('PAYMENT_REFUSED', words, { initiation })
  return initiation
}

/**
 * A reference that is taken. A request that goes on with what was begun under its `Idempotency-Key` finds
 * its own payment there, and is answered as the first time; anybody else hears that it exists.
 * @throws DomainError DUPLICATE_REFERENCE, PAYMENT_REFUSED
 */
function repeated(ctx: Context, item: Item, existing: Existing | undefined): Initiation {
  const isOwn =
    ctx.effect?.isResumed === true &&
    existing !== undefined &&
    existing.isCollection &&
    existing.initiatedAt >= ctx.effect.since &&
    existing.amount === item.amount &&
    existing.paymentMethod === item.provider &&
    existing.phone === item.phone
  if (isOwn) return answered(existing, undefined)
  throw new DomainError('DUPLICATE_REFERENCE', undefined, {
    ...(existing && { existingTransaction: { id: existing.transactionId, status: existing.status } }),
  })
}

/**
 * Sends what is on record. From here on the payment is under way whatever happens to us: what could not be
 * noted is asked about later, and the merchant is told the truth, that it is pending.
 */
async function sendOnce(ctx: Context, request: OpenRequest, deadline: Date): Promise<Sent> {
  try {
    return await shareFlight(ctx, `send:${request.id}`, () =>
      sendRequest(ctx, request, 'interactive', deadline),
    )
  } catch (error) {
    ctx.log.error(
      { err: error, transactionId: request.transactionId },
      'an answer of an operator was not noted',
    )
    return { status: 'pending', paymentUrl: null, reached: false, refusal: null }
  }
}

interface Item {
  merchantId: number
  apiKeyId: number
  apiKeyVersion: number
  provider: Provider
  phone: string
  amount: Xof
  reference: string
  request: OpenRequest['request']
}

type Made =
  | {
      outcome: 'made'
      transactionId: bigint
      requestId: bigint
      correlationId: string
      createdAt: Date
      expiresAt: Date
    }
  | { outcome: 'duplicate' }
  | { outcome: 'unauthenticated' }

/** One insert for all that arrived together; a reference that is taken gives no row. */
const collectMany = shareStatement(
  async (pool: Pool, items: readonly Item[]): Promise<Made[]> => {
    const { rows } = await pool.query<Made>({
      name: 'collect_many',
      text: `SELECT outcome, transaction_id AS "transactionId", request_id AS "requestId",
        correlation_id AS "correlationId", created_at AS "createdAt", expires_at AS "expiresAt"
      FROM collect_many($1, $2, $3, $4::provider[], $5, $6, $7, $8::jsonb[], $9, $10, $11)`,
      values: [
        items.map((i) => i.merchantId),
        items.map((i) => i.apiKeyId),
        items.map((i) => i.apiKeyVersion),
        items.map((i) => i.provider),
        items.map((i) => i.phone),
        items.map((i) => i.amount),
        items.map((i) => i.reference),
        items.map((i) => JSON.stringify(i.request)),
        limits.collectionLifetimeMs,
        limits.operatorFenceMs,
        limits.firstCheckMs,
      ],
    })
    return rows
  },
  ({ merchantId }: Item) => merchantId,
)

/** What the merchant asked, in the words of REST, without what has a column of its own. */
function requestData(input: z.output<typeof collectInput>): OpenRequest['request'] {
  const asked = {
    amount: Number(input.amount),
    currency: 'XOF',
    customer_phone: input.customerPhone,
    payment_method: input.paymentMethod,
    reference: input.reference,
    customer_email: input.customerEmail,
    description: input.description,
    return_url: input.returnUrl,
    cancel_url: input.cancelUrl,
  }
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value != null))
}

function openRequest(item: Item, made: Extract<Made, { outcome: 'made' }>): OpenRequest {
  return {
    id: made.requestId,
    merchantId: item.merchantId,
    transactionId: made.transactionId,
    provider: item.provider,
    kind: 'collect',
    amount: item.amount,
    phone: item.phone,
    handle: { correlationId: made.correlationId, clientRef: made.correlationId },
    state: 'sending',
    attempt: 1,
    checkCount: 0,
    createdAt: made.createdAt,
    expiresAt: made.expiresAt,
    request: item.request,
    status: 'pending',
    settledAt: null,
    claimed: null,
  }
}

/** Whom the statement itself turned away hears why from a fresh look at the key and the account. */
async function notAllowed(ctx: Context, item: Item): Promise<DomainError> {
  const { credentials } = ctx.access
  credentials.forget(item.apiKeyId)
  await credentials.check(actorOf(ctx))
  return new DomainError('UNAUTHENTICATED')
}

type Existing = Initiation & { phone: string; isCollection: boolean }

async function findExisting(ctx: Context, item: Item): Promise<Existing | undefined> {
  const { rows } = await ctx.database.merchantPool.query<Existing>({
    name: 'existing_transaction',
    text: `SELECT id AS "transactionId", reference, amount, payment_method AS "paymentMethod", status,
        payment_url AS "paymentUrl", failure_reason AS "failureReason", failure_message AS "failureMessage",
        created_at AS "initiatedAt", customer_phone AS phone, transaction_type = 'pay' AS "isCollection"
      FROM transaction WHERE reference = $1 AND merchant_id = $2`,
    values: [item.reference, item.merchantId],
  })
  return rows[0]
}
