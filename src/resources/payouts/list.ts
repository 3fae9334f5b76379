import { z } from 'zod'
import { mine } from '../../identity/callers/actor.ts'
import type { Context } from '../../context.ts'
import { type ListedTable, totalOf } from '../../database/find-rows.ts'
import { sqlFunction } from '../../database/sql-function.ts'
import { smallIdOf } from '../../shared/ids.ts'
import {
  amountRange,
  among,
  authorFilter,
  conditions,
  createdRange,
  searchOf,
  searchText,
  someOf,
  within,
} from '../../shared/filter.ts'
import { oneOf, readInput, reference } from '../../shared/input.ts'
import { payoutMethods } from '../../shared/providers.ts'
import { payoutStates } from './states.ts'

/** The filter of a list of payouts (see docs/design/rules.md#payouts). */
export const payoutFilterInput = z.object({
  status: someOf(oneOf(payoutStates.statuses)).nullish(),
  paymentMethod: someOf(oneOf(payoutMethods)).nullish(),
  reference: reference.nullish(),
  beneficiaryId: smallIdOf('Beneficiary').nullish(),
  createdBy: authorFilter.nullish(),
  search: searchText.nullish(),
  ...createdRange,
  ...amountRange,
})
type PayoutFilter = z.input<typeof payoutFilterInput>

/** The table that a search reads. */
export const payoutTable: ListedTable = {
  name: 'payout',
  amount: 'amount',
  idsOfPeriod: sqlFunction('payout_ids_of_period', {
    takes: { merchant: 'int', since: 'timestamptz?', until: 'timestamptz?' },
    gives: { oldest: 'bigint?', newest: 'bigint?' },
  }),
}

/**
 * Returns the condition of a filter for Prisma. It selects only payouts of the caller's merchant. For
 * BankTransfer it selects no row: there are no payouts by bank yet. Prisma cannot express the search of a
 * filter: see `database/find-rows.ts`.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export function payoutsWhere(ctx: Context, raw: PayoutFilter | null | undefined) {
  const filter = readInput(payoutFilterInput, raw ?? {})
  return conditions({
    ...mine(ctx),
    status: among(filter.status),
    paymentMethod: among(filter.paymentMethod?.filter((method) => method !== 'BankTransfer')),
    reference: filter.reference ?? undefined,
    beneficiaryId: filter.beneficiaryId ?? undefined,
    maker: filter.createdBy ?? undefined,
    createdAt: within(filter.createdFrom, filter.createdTo),
    amount: within(filter.amountMin, filter.amountMax),
  })
}

/**
 * Counts the payouts that match a filter, exactly. The counts by method and status are kept up to date in a
 * table; for any other filter this counts the rows.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export async function countPayouts(ctx: Context, raw: PayoutFilter | null | undefined): Promise<number> {
  const where = payoutsWhere(ctx, raw)
  if (!isCounted(where, raw)) return Number(await totalOfRows(ctx, where, raw, 'rows'))
  const { _sum: counted } = await ctx.database.prisma.payoutCount.aggregate({ where, _sum: { n: true } })
  return Number(counted.n ?? 0n)
}

/**
 * Adds up the amounts of the payouts that match a filter, exactly, in whole francs. Those by method and
 * status come from the figures of days; for any other filter this adds up the rows.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export async function sumPayouts(ctx: Context, raw: PayoutFilter | null | undefined): Promise<bigint> {
  const where = payoutsWhere(ctx, raw)
  if (!isCounted(where, raw)) return totalOfRows(ctx, where, raw, 'amounts')
  const { rows } = await ctx.database.merchantPool.query<{ amount: bigint }>({
    name: 'payout_amounts',
    text: `SELECT coalesce(sum(amount), 0)::bigint AS amount FROM (
        SELECT merchant_id, kind, payment_method, status, amount FROM payment_figure WHERE hours = 24
        UNION ALL SELECT merchant_id, kind, payment_method, status, amount FROM disbursement_change
      ) AS counted
      WHERE merchant_id = $1 AND kind = 'payout' AND ($2::provider[] IS NULL OR payment_method = ANY ($2))
        AND ($3::transaction_status[] IS NULL OR status = ANY ($3))`,
    values: [where.merchantId, where.paymentMethod?.in ?? null, where.status?.in.flatMap(figuredAs) ?? null],
  })
  return rows[0]?.amount ?? 0n
}

type Where = ReturnType<typeof payoutsWhere>

/** Whether the counts by method and status give the total of a filter. */
function isCounted(where: Where, raw: PayoutFilter | null | undefined): boolean {
  return raw?.search == null && Object.keys(where).every((name) => countedBy.has(name))
}

function totalOfRows(
  ctx: Context,
  where: Where,
  raw: PayoutFilter | null | undefined,
  what: 'rows' | 'amounts',
) {
  const filtered = { table: payoutTable, where, search: searchOf(raw?.search) }
  return totalOf(ctx.database.merchantPool, filtered, what)
}

/** The statuses that figures have for a payout: one that came back is completed too. */
const figuredAs = (status: (typeof payoutStates.statuses)[number]) =>
  status === 'completed' ? ['success', 'reversed'] : [status]

const countedBy: ReadonlySet<string> = new Set(['merchantId', 'paymentMethod', 'status'])
