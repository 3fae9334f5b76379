import { sqlFunction } from '../../database/sql-function.ts'
import { z } from 'zod'
import { mine } from '../../identity/callers/actor.ts'
import { recordedChange, recordingOf } from '../../audit/audit-log.ts'
import type { Context } from '../../context.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { currencyField, readInput, replaced } from '../../shared/input.ts'
import { checkExpiry, linkFields } from './create.ts'

/** The input of a change of a payment link (see docs/design/rules.md#payment-links). */
export const updateLinkInput = z.object({
  ...linkFields,
  title: replaced(linkFields.title),
  currency: replaced(currencyField),
  isActive: replaced(z.boolean('must be true or false')),
})
export type UpdateLinkInput = z.input<typeof updateLinkInput>

/**
 * Changes the given fields of a link and keeps the others. Null removes a description, an amount, a limit or
 * an expiry. Open attempts keep their amount.
 * @throws DomainError INVALID_INPUT, NOT_FOUND
 * @see docs/design/rules.md#payment-links
 */
export async function updateLink(ctx: Context, id: number, raw: UpdateLinkInput): Promise<{ id: number }> {
  const input = readInput(updateLinkInput, raw)
  const now = ctx.clock.now()
  checkExpiry(input.expiresAt, now)
  const { merchantId } = mine(ctx)
  const given = (name: keyof UpdateLinkInput) => raw[name] !== undefined
  const isThere = await transact({ pool: ctx.database.merchantPool }, (tx) =>
    recordedChange(tx, recordingOf(ctx, 'updatePaymentLink'), ['payment_link', id], () =>
      change(tx, {
        link: id,
        merchant: merchantId,
        newTitle: input.title,
        active: input.isActive,
        hasDescription: given('description'),
        newDescription: input.description || null,
        hasAmount: given('amount'),
        newAmount: input.amount,
        hasLimit: given('usageLimit'),
        newLimit: input.usageLimit,
        hasExpiry: given('expiresAt'),
        newExpiry: input.expiresAt,
        at: now,
      }),
    ),
  )
  if (!isThere) throw noSuchLink()
  return { id }
}

const change = sqlFunction('update_payment_link', {
  takes: {
    link: 'int',
    merchant: 'int',
    newTitle: 'text?',
    active: 'boolean?',
    hasDescription: 'boolean',
    newDescription: 'text?',
    hasAmount: 'boolean',
    newAmount: 'bigint?',
    hasLimit: 'boolean',
    newLimit: 'int?',
    hasExpiry: 'boolean',
    newExpiry: 'timestamptz?',
    at: 'timestamptz',
  },
  gives: 'boolean',
})

/** Returns the error for a link that does not exist or belongs to another merchant. */
export function noSuchLink(): DomainError {
  return new DomainError('NOT_FOUND', 'There is no such payment link.')
}
