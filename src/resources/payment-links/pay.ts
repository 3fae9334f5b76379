import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import { DatabaseError } from 'pg'
import { z } from 'zod'
import { asPlatform } from '../../database/as-platform.ts'
import { operatorIdentity } from '../../identity/operator-identities.ts'
import { addressBlock } from '../../shared/ip-whitelist.ts'
import { currentPepperId, hashSecret } from '../../identity/secrets.ts'
import type { Context } from '../../context.ts'
import { DomainError } from '../../shared/errors.ts'
import { amount, phone, provider, readInput } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import { currency } from '../../shared/money.ts'
import { deadlineIn } from '../../operators/call-limits.ts'
import {
  askPayer,
  connectedOperator,
  type Initiation,
  type InitiationItem,
  type MadeCollection,
  operatorUnavailable,
  requestData,
} from '../transactions/initiation.ts'
import type { PublicLink } from './find.ts'
import { noSuchLink } from './update.ts'

/** What somebody who pays by a link gives. */
export const payByLinkInput = z.object({
  amount: amount({ min: limits.collectAmountMinXof, max: limits.amountMaxXof }),
  customerPhone: phone,
  paymentMethod: provider,
})

/**
 * A telephone that links asked as often as the setting says within the window, and that did not pay, is left
 * alone until that is over; likewise a few times as often within a day. Choice: nobody is pestered.
 */
export const prompts = { windowMs: 10 * 60_000, dayFactor: 4, dayMs: 24 * 60 * 60_000 } as const

/** One press of the button, and where its payer comes back to from an operator's page. */
export interface LinkAttempt {
  /** New for each form: the form sent twice is one attempt. */
  reference: string
  page: string
}

/**
 * Asks somebody who pays by a link for money, as `collect` does for a merchant: the intent is on record
 * before the operator is asked. The attempt holds a place of the link until it ends, for ten minutes at most,
 * and one address has a tenth of the places at a time (3 to 100).
 * @param raw.amount as the payer was shown it, or typed it
 * @throws DomainError INVALID_INPUT, NOT_FOUND, LINK_CLOSED, AMOUNT_CHANGED, DUPLICATE_REFERENCE,
 *   RATE_LIMITED (`whose: 'telephone'` where that was asked often and did not pay, `'link'` where open
 *   attempts hold all places, `'address'` where those of this address hold all that it may have),
 *   OPERATOR_UNAVAILABLE (nothing was recorded), PAYMENT_REFUSED (recorded as failed)
 */
export async function payByLink(
  ctx: Context,
  link: Pick<PublicLink, 'id' | 'slug' | 'title'>,
  raw: z.input<typeof payByLinkInput>,
  { reference, page }: LinkAttempt,
): Promise<Initiation> {
  const input = readInput(payByLinkInput, raw)
  const operator = connectedOperator(ctx, input.paymentMethod)
  const start = operator.canStart('collect')
  if (!start.ok) throw operatorUnavailable(start.retryAfterMs)
  const item = {
    provider: input.paymentMethod,
    phone: input.customerPhone,
    amount: input.amount,
    reference,
    identity: operatorIdentity(ctx.access.master, {
      merchantId: null,
      kind: 'collect',
      by: 'link',
      name: `${link.slug} ${reference}`,
    }),
    request: requestData({
      amount: Number(input.amount),
      currency,
      customer_phone: input.customerPhone,
      payment_method: input.paymentMethod,
      description: Array.from(link.title).slice(0, limits.descriptionLengthMax).join(''),
      return_url: page,
      cancel_url: page,
      payment_link_id: link.id,
    }),
  }
  await ctx.requestLimits.takePrompt(link.id)
  const deadline = deadlineIn(limits.collectDeadlineMs)
  const made = await record(ctx, link.id, item)
  ctx.sequencer.notify()
  return askPayer(ctx, { ...item, merchantId: made.merchantId }, made, deadline)
}

const collectByLink = sqlFunction('collect_by_link', {
  takes: {
    link: 'int',
    operator: 'provider',
    phone: 'text',
    shown: 'bigint',
    reference: 'text',
    request: 'jsonb',
    lifetimeMs: 'bigint',
    fenceMs: 'bigint',
    firstCheckMs: 'bigint',
    askedMax: 'int[]',
    askedMs: 'bigint[]',
    identity: 'uuid',
    visitor: 'bytea',
  },
  gives: {
    outcome: sqlType<'made' | 'closed' | 'changed' | 'held' | 'crowded' | 'asked'>('text'),
    availability: 'text',
    merchantId: 'int?',
    transactionId: 'bigint?',
    requestId: 'bigint?',
    correlationId: 'uuid?',
    createdAt: 'timestamptz?',
    expiresAt: 'timestamptz?',
    freeInMs: 'bigint?',
    isOrphan: 'boolean?',
  },
})

/** @throws DomainError NOT_FOUND, LINK_CLOSED, AMOUNT_CHANGED, DUPLICATE_REFERENCE, RATE_LIMITED */
async function record(
  ctx: Context,
  linkId: number,
  item: Pick<InitiationItem, 'provider' | 'phone' | 'amount' | 'reference' | 'identity' | 'request'>,
): Promise<MadeCollection & { merchantId: number }> {
  const { promptsPerPhone: asked } = ctx.config.pace
  const { pool } = asPlatform(ctx, 'a payer is not signed in: the slug is the credential')
  const recorded = collectByLink(pool, {
    link: linkId,
    operator: item.provider,
    phone: item.phone,
    shown: item.amount,
    reference: item.reference,
    request: item.request,
    lifetimeMs: limits.collectionLifetimeMs,
    fenceMs: limits.operatorFenceMs,
    firstCheckMs: limits.firstCheckMs,
    askedMax: [asked, asked * prompts.dayFactor],
    askedMs: [prompts.windowMs, prompts.dayMs],
    identity: item.identity,
    visitor: hashOfVisitor(ctx, linkId),
  })
  const [row] = await recorded.catch((error: unknown) => {
    const isTaken =
      error instanceof DatabaseError && error.constraint === 'transaction_reference_merchant_id_key'
    throw isTaken ? new DomainError('DUPLICATE_REFERENCE') : error
  })
  if (!row) throw noSuchLink()
  if (row.outcome === 'closed') throw new DomainError('LINK_CLOSED')
  if (row.outcome === 'changed') throw new DomainError('AMOUNT_CHANGED')
  if (row.outcome === 'made') return row as MadeCollection & { merchantId: number }
  const retryAfterS = Math.ceil(Number(row.freeInMs) / 1_000)
  throw new DomainError('RATE_LIMITED', undefined, { retryAfterS, whose: waitsFor[row.outcome] })
}

/** Whose turn it is not, of a refusal that ends with time. */
const waitsFor = { asked: 'telephone', held: 'link', crowded: 'address' } as const

/** What the database keeps of the address of a payer while the attempt holds a place. */
function hashOfVisitor({ access, clientAddress }: Context, linkId: number): Buffer {
  const visitor = `link:${linkId}:${addressBlock(clientAddress)}`
  return hashSecret(visitor, access.master.pepper(currentPepperId))
}
