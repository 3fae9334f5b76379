import { z } from 'zod'
import { mine } from '../../identity/callers/actor.ts'
import { recordingOf, recordMade } from '../../audit/audit-log.ts'
import type { Context } from '../../context.ts'
import { transact } from '../../database/transact.ts'
import { oneOf, readInput, text, withDefault } from '../../shared/input.ts'
import { invariant } from '../../shared/invariant.ts'
import { limits } from '../../shared/limits.ts'
import { asStored, fits, destinationFields } from './account.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import type { PayoutMethod } from '../../shared/providers.ts'

/** The relations of a beneficiary to the merchant (see docs/design/rules.md#beneficiaries). */
export const beneficiaryCategories = ['supplier', 'employee', 'partner', 'customer'] as const

export const beneficiaryFields = {
  ...destinationFields,
  name: text({ min: 1, max: limits.beneficiaryNameLengthMax }),
  category: oneOf(beneficiaryCategories),
}
export const createBeneficiaryInput = z
  .object({ ...beneficiaryFields, category: withDefault(beneficiaryFields.category, 'customer') })
  .refine(...fits)
  .transform(asStored)
type CreateBeneficiaryInput = z.input<typeof createBeneficiaryInput>

const insertBeneficiary = sqlFunction('create_beneficiary', {
  takes: {
    merchant: 'int',
    called: 'text',
    givenAccount: 'text',
    method: sqlType<PayoutMethod>('payout_method'),
    kind: sqlType<(typeof beneficiaryCategories)[number]>('beneficiary_category'),
    operationId: 'text?',
    at: 'timestamptz',
  },
  gives: 'int?',
})

/**
 * Saves a beneficiary of the merchant. Two beneficiaries may have the same account.
 * @param raw.account a mobile number of Mali, stored as E.164; or a bank account of 5 to 34 characters,
 *   stored as it is
 * @throws DomainError INVALID_INPUT
 * @see docs/design/rules.md#beneficiaries
 */
export async function createBeneficiary(ctx: Context, raw: CreateBeneficiaryInput): Promise<{ id: number }> {
  const { category, ...input } = readInput(createBeneficiaryInput, raw)
  const now = ctx.clock.now()
  const madeFor = ctx.idempotentOperation?.id ?? null
  const { name, account, paymentMethod } = input
  const { merchantId } = mine(ctx)
  const made = await transact({ pool: ctx.database.merchantPool }, async (tx) => {
    const id = await insertBeneficiary(tx, {
      merchant: merchantId,
      called: name,
      givenAccount: account,
      method: paymentMethod,
      kind: category,
      operationId: madeFor,
      at: now,
    })
    if (id !== null) await recordMade(tx, recordingOf(ctx, 'createBeneficiary'), ['beneficiary', id])
    return id
  })
  if (made !== null) return { id: made }
  // An earlier try of the same request created the beneficiary.
  const known = await ctx.database.prisma.beneficiary.findFirst({ where: { ...mine(ctx), madeFor } })
  invariant(known, 'the row that the operation made exists')
  return known
}
