import { z } from 'zod'
import { mine } from '../../identity/callers/actor.ts'
import { recordedChange, recordingOf } from '../../audit/audit-log.ts'
import type { Context } from '../../context.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { readInput, replaced } from '../../shared/input.ts'
import { destinationInput } from './account.ts'
import { type beneficiaryCategories, beneficiaryFields } from './create.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import type { PayoutMethod } from '../../shared/providers.ts'

const { name, account, paymentMethod, category } = beneficiaryFields
export const updateBeneficiaryInput = z.object({
  name: replaced(name),
  account: replaced(account),
  paymentMethod: replaced(paymentMethod),
  category: replaced(category),
  isActive: replaced(z.boolean('must be true or false')),
})
type UpdateBeneficiaryInput = z.input<typeof updateBeneficiaryInput>

/**
 * Changes the given fields of a beneficiary and keeps the others. The new account and the new method are
 * checked together; if only one is given, the stored value of the other is used. Existing payouts keep their
 * account and method.
 * @throws DomainError INVALID_INPUT, NOT_FOUND, OVERLOADED where other requests change it at every try
 * @see docs/design/rules.md#beneficiaries
 */
export async function updateBeneficiary(
  ctx: Context,
  id: number,
  raw: UpdateBeneficiaryInput,
): Promise<{ id: number }> {
  const input = readInput(updateBeneficiaryInput, raw)
  const where = { ...mine(ctx), id }
  const given = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))
  for (let tries = 0; tries < triesMax; tries += 1) {
    const before = await ctx.database.prisma.beneficiary.findFirst({ where })
    if (!before) throw new DomainError('NOT_FOUND', 'There is no such beneficiary.')
    const destination = { account: before.account, paymentMethod: before.paymentMethod }
    const changesDestination = input.account !== undefined || input.paymentMethod !== undefined
    const data: Partial<typeof before> = {
      ...given,
      ...(changesDestination && readInput(destinationInput, { ...destination, ...given })),
    }
    // The update applies only while the stored account and method are those that were checked: another
    // request may have changed them since.
    const isChanged = await transact({ pool: ctx.database.merchantPool }, (tx) =>
      recordedChange(tx, recordingOf(ctx, 'updateBeneficiary'), ['beneficiary', before.id], () =>
        changeBeneficiary(tx, {
          merchant: before.merchantId,
          beneficiaryId: before.id,
          called: data.name,
          givenAccount: data.account,
          method: data.paymentMethod,
          kind: data.category,
          active: data.isActive,
          at: ctx.clock.now(),
          accountWas: changesDestination ? destination.account : null,
          methodWas: changesDestination ? destination.paymentMethod : null,
        }),
      ),
    )
    if (isChanged) return { id: before.id }
  }
  throw new DomainError('OVERLOADED')
}

const changeBeneficiary = sqlFunction('update_beneficiary', {
  takes: {
    merchant: 'int',
    beneficiaryId: 'int',
    called: 'text?',
    givenAccount: 'text?',
    method: sqlType<PayoutMethod | null>('payout_method?'),
    kind: sqlType<(typeof beneficiaryCategories)[number] | null>('beneficiary_category?'),
    active: 'boolean?',
    at: 'timestamptz',
    accountWas: 'text?',
    methodWas: sqlType<PayoutMethod | null>('payout_method?'),
  },
  gives: 'boolean?',
})

/**
 * The maximum number of tries. Choice: the number of requests that may run at once, because a try fails only
 * if another request changed the beneficiary.
 */
const triesMax = 200
