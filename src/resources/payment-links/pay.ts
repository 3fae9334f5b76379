import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import { DatabaseError } from 'pg'
import { z } from 'zod'
import { asPlatform } from '../../database/as-platform.ts'
import { operatorIdentity } from '../../identity/secrets/operator-identities.ts'
import { addressBlock } from '../../shared/ip-whitelist.ts'
import { currentPepperId, hashSecret } from '../../identity/secrets/secrets.ts'
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

export const payByLinkInput = z.object({
  amount: amount({ min: limits.collectAmountMinXof, max: limits.amountMaxXof }),
  customerPhone: phone,
  paymentMethod: provider,
})

/**
 * The windows that bound how often links prompt one telephone. Prompts that were paid do not count. The
 * setting `promptsPerPhone` is the maximum in the short window; a day allows `dayFactor` times as many.
 * Choice: strangers must not be able to bother a telephone with prompts.
 */
export const prompts = { windowMs: 10 * 60_000, dayFactor: 4, dayMs: 24 * 60 * 60_000 } as const

/** One submitted payment form, and the page to which an operator's page sends the payer back. */
export interface LinkAttempt {
  /** The reference of the form, new for each form: a form that is sent twice makes one attempt. */
  reference: string
  page: string
}

/**
 * Begins a payment by a link and asks the operator to prompt the payer, as `collect` does for a merchant: the
 * request is recorded before the operator is asked. The attempt holds a slot of the link until it ends, for
 * ten minutes at most. `link_visitor_waits_until` says how many slots one client address may hold.
 * @param raw.amount the amount that the payer was shown or typed
 * @throws DomainError INVALID_INPUT, NOT_FOUND, LINK_CLOSED, AMOUNT_CHANGED, DUPLICATE_REFERENCE,
 *   RATE_LIMITED (`whose: 'telephone'` where the telephone was prompted often and did not pay, `'link'` where
 *   open attempts hold all slots, `'address'` where the client address must wait),
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
  return askPayer(ctx, { ...item, merchantId: made.merchantId }, made, deadline)
}

/** Records one attempt to pay by a link; see collect_by_link.sql. */
export const collectByLink = sqlFunction('collect_by_link', {
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
    outcome: sqlType<'made' | 'closed' | 'changed' | 'differs' | 'held' | 'crowded' | 'asked'>('text'),
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

/**
 * Records the attempt, and the request to the operator.
 * @throws DomainError NOT_FOUND, LINK_CLOSED, AMOUNT_CHANGED, DUPLICATE_REFERENCE, RATE_LIMITED
 */
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
  // The page sends the form again under a new reference.
  if (row.outcome === 'differs') throw new DomainError('DUPLICATE_REFERENCE')
  if (row.outcome === 'made') return row as MadeCollection & { merchantId: number }
  const retryAfterS = Math.ceil(Number(row.freeInMs) / 1_000)
  throw new DomainError('RATE_LIMITED', undefined, { retryAfterS, whose: waitsFor[row.outcome] })
}

/** The value of `whose` for each outcome after which the payer must wait: the bound that was reached. */
const waitsFor = { asked: 'telephone', held: 'link', crowded: 'address' } as const

/** The groups of an IPv6 address that name a customer: a provider gives one customer up to a /48 network. */
const customerGroups = 3

/**
 * Returns the hash of a client address; of IPv6, of the network that one customer may have whole. The
 * database keeps the hash of an unpaid attempt for six hours.
 */
function hashOfVisitor({ access, clientAddress }: Context, linkId: number): Buffer {
  const visitor = `link:${linkId}:${addressBlock(clientAddress, customerGroups)}`
  return hashSecret(visitor, access.master.pepper(currentPepperId))
}
