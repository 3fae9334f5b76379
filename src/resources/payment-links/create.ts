import { sqlFunction } from '../../database/sql-function.ts'
import pg from 'pg'
import { z } from 'zod'
import { mine } from '../../identity/callers/actor.ts'
import { recordingOf, recordMade } from '../../audit/audit-log.ts'
import type { Context } from '../../context.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { amount, invalidInput, lines, readInput, text, xofByDefault } from '../../shared/input.ts'
import { invariant } from '../../shared/invariant.ts'
import { limits } from '../../shared/limits.ts'
import { time } from '../../shared/time.ts'
import { makeSlug, slug } from './slug.ts'

/**
 * The longest texts of a payment link, and its highest usage limit (see docs/design/rules.md#payment-links).
 */
export const linkTitleLengthMax = 200
export const linkDescriptionLengthMax = 1_000
const linkUsageLimitMax = 1_000_000_000

const uses = `must be a whole number from 1 to ${linkUsageLimitMax}`

export const linkFields = {
  title: text({ min: 1, max: linkTitleLengthMax }),
  description: lines({ max: linkDescriptionLengthMax }).nullish(),
  amount: amount({ min: limits.collectAmountMinXof, max: limits.amountMaxXof }).nullish(),
  currency: xofByDefault,
  usageLimit: z.int(uses).min(1, uses).max(linkUsageLimitMax, uses).nullish(),
  expiresAt: time.nullish(),
}

/** The input of a new payment link (see docs/design/rules.md#payment-links). */
export const createLinkInput = z.object({ ...linkFields, urlSlug: slug.nullish() })
export type CreateLinkInput = z.input<typeof createLinkInput>

/**
 * Creates a payment link: a page on which anyone can pay the merchant.
 * @param raw.amount whole XOF, 100 to 1,000,000; left out, the payer types the amount
 * @param raw.urlSlug the name of the link in its address, unique in the service; generated where left out
 * @throws DomainError INVALID_INPUT, SLUG_TAKEN
 * @see docs/design/rules.md#payment-links
 */
export async function createLink(ctx: Context, raw: CreateLinkInput): Promise<{ id: number }> {
  const input = readInput(createLinkInput, raw)
  const now = ctx.clock.now()
  checkExpiry(input.expiresAt, now)
  const { merchantId } = mine(ctx)
  const madeFor = ctx.idempotentOperation?.id ?? null
  try {
    const made = await transact({ pool: ctx.database.merchantPool }, async (tx) => {
      const id = await insert(tx, {
        merchant: merchantId,
        title: input.title,
        description: input.description || null,
        amount: input.amount,
        slug: input.urlSlug ?? makeSlug(),
        usageLimit: input.usageLimit,
        expiresAt: input.expiresAt,
        operationId: madeFor,
        at: now,
      })
      if (id !== null) await recordMade(tx, recordingOf(ctx, 'createPaymentLink'), ['payment_link', id])
      return id
    })
    if (made !== null) return { id: made }
  } catch (error) {
    const isTaken = error instanceof pg.DatabaseError && error.constraint === 'payment_link_url_slug_key'
    if (!isTaken) throw error
    // The slug may be taken by the link that an earlier try of this request created.
    const own = madeFor && (await madeBefore(ctx, madeFor))
    if (own) return own
    throw new DomainError('SLUG_TAKEN')
  }
  invariant(madeFor, 'a link exists already only for a request with an idempotency key')
  const known = await madeBefore(ctx, madeFor)
  invariant(known, 'the row that the operation made exists')
  return known
}

const insert = sqlFunction('create_payment_link', {
  takes: {
    merchant: 'int',
    title: 'text',
    description: 'text?',
    amount: 'bigint?',
    slug: 'text',
    usageLimit: 'int?',
    expiresAt: 'timestamptz?',
    operationId: 'text?',
    at: 'timestamptz',
  },
  gives: 'int?',
})

function madeBefore(ctx: Context, madeFor: string): Promise<{ id: number } | null> {
  return ctx.database.prisma.paymentLink.findFirst({ where: { ...mine(ctx), madeFor }, select: { id: true } })
}

/** Refuses an expiry that is not in the future. @throws DomainError INVALID_INPUT */
export function checkExpiry(expiresAt: Date | null | undefined, now: Date): void {
  if (!expiresAt || expiresAt > now) return
  throw invalidInput([{ field: 'expiresAt', message: 'must be in the future' }])
}
