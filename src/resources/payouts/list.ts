import { z } from 'zod'
import { mine } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import { smallIdOf } from '../../shared/ids.ts'
import { oneOf, readInput, reference } from '../../shared/input.ts'
import { payoutMethods } from '../../shared/providers.ts'
import { payoutStates } from './states.ts'

/** The filter of a list of payouts (see docs/design/rules.md#payouts). */
export const payoutFilterInput = z.object({
  status: oneOf(payoutStates.statuses).nullish(),
  paymentMethod: oneOf(payoutMethods).nullish(),
  reference: reference.nullish(),
  beneficiaryId: smallIdOf('Beneficiary').nullish(),
})
type PayoutFilter = z.input<typeof payoutFilterInput>

/**
 * Returns the condition of a filter for Prisma. It selects only payouts of the caller's merchant. For
 * BankTransfer it selects no row: there are no payouts by bank yet.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export function payoutsWhere(ctx: Context, raw: PayoutFilter | null | undefined) {
  const { status, paymentMethod, ...filter } = readInput(payoutFilterInput, raw ?? {})
  return {
    ...mine(ctx),
    ...(status && { status }),
    ...(paymentMethod === 'BankTransfer' ? { id: { lt: 0n } } : paymentMethod && { paymentMethod }),
    ...(filter.reference && { reference: filter.reference }),
    ...(filter.beneficiaryId != null && { beneficiaryId: filter.beneficiaryId }),
  }
}

/**
 * Counts the payouts that match a filter, exactly. The counts by method and status are kept up to date in a
 * table; for any other filter this counts the rows.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export async function countPayouts(ctx: Context, raw: PayoutFilter | null | undefined): Promise<number> {
  const where = payoutsWhere(ctx, raw)
  if ('reference' in where || 'beneficiaryId' in where || 'id' in where) {
    return ctx.database.prisma.payout.count({ where })
  }
  const { _sum: counted } = await ctx.database.prisma.payoutCount.aggregate({ where, _sum: { n: true } })
  return Number(counted.n ?? 0n)
}
