import { z } from 'zod'
import { mine } from '../../access/actor.ts'
import type { Context } from '../../context.ts'
import { provider, readInput, reference, time, phone } from '../../shared/input.ts'
import { transactionStates } from './states.ts'

const words = (values: readonly string[]) => `must be one of ${values.join(', ')}`
/** What a transaction can be (specification: Transaction). */
export const transactionTypes = ['pay', 'deposit', 'balance_check'] as const

/** Which transactions a list shows (decisions: GET /transactions). */
export const transactionFilterInput = z.object({
  transactionType: z.enum(transactionTypes, words(transactionTypes)).nullish(),
  paymentMethod: provider.nullish(),
  status: z.enum(transactionStates.statuses, words(transactionStates.statuses)).nullish(),
  reference: reference.nullish(),
  customerPhone: phone.nullish(),
  createdFrom: time.nullish(),
  createdTo: time.nullish(),
})
export type TransactionFilter = z.input<typeof transactionFilterInput>

/**
 * The rows that a filter means: always of the caller's merchant only.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export function transactionsWhere(ctx: Context, raw: TransactionFilter | null | undefined) {
  const filter = readInput(transactionFilterInput, raw ?? {})
  return {
    ...mine(ctx),
    ...(filter.transactionType && { transactionType: filter.transactionType }),
    ...(filter.paymentMethod && { paymentMethod: filter.paymentMethod }),
    ...(filter.status && { status: filter.status }),
    ...(filter.reference && { reference: filter.reference }),
    ...(filter.customerPhone && { customerPhone: filter.customerPhone }),
    ...((filter.createdFrom || filter.createdTo) && {
      createdAt: {
        ...(filter.createdFrom && { gte: filter.createdFrom }),
        ...(filter.createdTo && { lte: filter.createdTo }),
      },
    }),
  }
}
