import { z } from 'zod'
import { mine } from '../../identity/actor.ts'
import { recordedChange, recordingOf } from '../../audit/audit-log.ts'
import type { Context } from '../../context.ts'
import { transact } from '../../database/transact.ts'
import { readId } from '../../graphql/ids.ts'
import { DomainError } from '../../shared/errors.ts'
import { readInput, smallIdMax } from '../../shared/input.ts'
import { placeInput } from './account.ts'
import { beneficiaryFields } from './create.ts'

const { name, account, paymentMethod, category } = beneficiaryFields
export const updateBeneficiaryInput = z.object({
  name: name.nullish(),
  account: account.nullish(),
  paymentMethod: paymentMethod.nullish(),
  category,
  isActive: z.boolean('must be true or false').nullish(),
})
type UpdateBeneficiaryInput = z.input<typeof updateBeneficiaryInput>

/**
 * Changes what is given of a beneficiary, and leaves the rest as it is. Account and method are judged
 * together, as they will be. Payouts that were made keep what they paid.
 * @param rawId a global id or the id of REST
 * @throws DomainError INVALID_INPUT, NOT_FOUND, OVERLOADED where others change it all the while
 * @see specification: Beneficiaries; decisions: Endpoints
 */
export async function updateBeneficiary(
  ctx: Context,
  rawId: string,
  raw: UpdateBeneficiaryInput,
): Promise<{ id: number }> {
  const input = readInput(updateBeneficiaryInput, raw)
  const where = { ...mine(ctx), id: beneficiaryId(rawId) }
  const given = Object.fromEntries(Object.entries(input).filter(([, value]) => value != null))
  for (let tries = 0; tries < triesMax; tries += 1) {
    const before = await ctx.database.prisma.beneficiary.findFirst({ where })
    if (!before) throw new DomainError('NOT_FOUND', 'There is no such beneficiary.')
    const place = { account: before.account, paymentMethod: before.paymentMethod }
    const judged = input.account != null || input.paymentMethod != null
    const data: Partial<typeof before> = {
      ...given,
      ...(judged && readInput(placeInput, { ...place, ...given })),
    }
    // What was judged together is written only while it is so: another change may have come in between.
    const { rowCount } = await transact({ pool: ctx.database.merchantPool }, (tx) =>
      recordedChange(tx, recordingOf(ctx, 'updateBeneficiary'), ['beneficiary', before.id], () =>
        tx.query(updateSql, [
          before.id,
          before.merchantId,
          data.name,
          data.account,
          data.paymentMethod,
          data.category,
          data.isActive,
          ctx.clock.now(),
          judged ? place.account : null,
          judged ? place.paymentMethod : null,
        ]),
      ),
    )
    if (rowCount) return { id: before.id }
  }
  throw new DomainError('OVERLOADED')
}

const updateSql = `
  UPDATE beneficiary SET name = coalesce($3, name), account = coalesce($4, account),
    payment_method = coalesce($5, payment_method), category = coalesce($6, category),
    is_active = coalesce($7, is_active), updated_at = $8
  WHERE id = $1 AND merchant_id = $2 AND coalesce(account = $9, true)
    AND coalesce(payment_method = $10, true)`

/** Each try that fails means that another's change was made: as many as may be under way at once. */
const triesMax = 200

/** @param rawId a global id or the id of REST */
export function beneficiaryId(rawId: string): number {
  return Number(readId('Beneficiary', rawId, smallIdMax))
}
