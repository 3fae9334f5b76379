import { z } from 'zod'
import { mine } from '../../identity/actor.ts'
import { recordedChange, recordingOf } from '../../audit/audit-log.ts'
import type { Context } from '../../context.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { readInput } from '../../shared/input.ts'
import { checkExpiry, linkFields } from './create.ts'

/** What changes of a link (specification: PUT /payment-links/{id}). */
export const updateLinkInput = z.object({
  ...linkFields,
  title: linkFields.title.nullish(),
  isActive: z.boolean('must be true or false').nullish(),
})
export type UpdateLinkInput = z.input<typeof updateLinkInput>

/**
 * Changes what is given of a link, and leaves the rest as it is; null takes a description, an amount, a limit
 * or an expiry away. Attempts that are open keep the amount that they began with.
 * @throws DomainError INVALID_INPUT, NOT_FOUND
 * @see specification: PUT /payment-links/{id}
 */
export async function updateLink(ctx: Context, id: number, raw: UpdateLinkInput): Promise<{ id: number }> {
  const input = readInput(updateLinkInput, raw)
  const now = ctx.clock.now()
  checkExpiry(input.expiresAt, now)
  const { merchantId } = mine(ctx)
  const given = (name: keyof UpdateLinkInput) => raw[name] !== undefined
  const { rowCount } = await transact({ pool: ctx.database.merchantPool }, (tx) =>
    recordedChange(tx, recordingOf(ctx, 'updatePaymentLink'), ['payment_link', id], () =>
      tx.query(updateSql, [
        id,
        merchantId,
        input.title,
        input.isActive,
        given('description'),
        input.description || null,
        given('amount'),
        input.amount,
        given('usageLimit'),
        input.usageLimit,
        given('expiresAt'),
        input.expiresAt,
        now,
      ]),
    ),
  )
  if (!rowCount) throw noSuchLink()
  return { id }
}

const updateSql = `
  UPDATE payment_link SET title = coalesce($3, title), is_active = coalesce($4, is_active),
    description = CASE WHEN $5 THEN $6 ELSE description END,
    amount = CASE WHEN $7 THEN $8::bigint ELSE amount END,
    usage_limit = CASE WHEN $9 THEN $10::int ELSE usage_limit END,
    expires_at = CASE WHEN $11 THEN $12::timestamptz ELSE expires_at END, updated_at = $13
  WHERE id = $1 AND merchant_id = $2`

/** A link of nobody, or of another merchant. */
export function noSuchLink(): DomainError {
  return new DomainError('NOT_FOUND', 'There is no such payment link.')
}
