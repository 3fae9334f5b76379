import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import type { Pool } from 'pg'
import { z } from 'zod'
import { mine } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import { oneOf, phone, provider, readInput, reference, time } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import { transactionStates } from './states.ts'

/**
 * The first offset at which a list without a filter uses the counts. Below it, the rows before the page are
 * skipped one by one.
 */
export const offsetNearMax = 1_000

/** The types of a transaction (see docs/design/rules.md#transactions). */
export const transactionTypes = ['pay', 'deposit', 'balance_check'] as const

/** The filter of a list of transactions (see docs/design/rules.md#transactions). */
export const transactionFilterInput = z.object({
  transactionType: oneOf(transactionTypes).nullish(),
  paymentMethod: provider.nullish(),
  status: oneOf(transactionStates.statuses).nullish(),
  reference: reference.nullish(),
  customerPhone: phone.nullish(),
  createdFrom: time.nullish(),
  createdTo: time.nullish(),
})
export type TransactionFilter = z.input<typeof transactionFilterInput>

/**
 * Returns the condition of a filter for Prisma. It selects only transactions of the caller's merchant.
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

/**
 * Counts the transactions that match a filter, exactly. The counts by type, method and status are kept up to
 * date in tables; for any other filter this counts the rows.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export async function countTransactions(
  ctx: Context,
  raw: TransactionFilter | null | undefined,
): Promise<number> {
  const kind = kindOf(ctx, raw)
  if (!kind) return ctx.database.prisma.transaction.count({ where: transactionsWhere(ctx, raw) })
  const { rows } = await ctx.database.merchantPool.query<{ n: bigint }>({
    name: 'transaction_total',
    text: `SELECT coalesce(sum(n), 0)::bigint AS n FROM (
        SELECT n FROM transaction_count WHERE ${isOfKind}
        UNION ALL SELECT n FROM transaction_count_change WHERE ${isOfKind}
      ) AS counted`,
    values: kind,
  })
  return Number(rows[0]?.n ?? 0)
}

const compactTransactionCounts = sqlFunction('compact_transaction_counts', {
  takes: { take: 'int' },
  gives: 'int',
})

/** The maximum number of changes that one step adds to the counts. */
export const countChangesMax = 20_000

/** Adds pending changes to the counts of transactions. @returns whether there may be more */
export async function compactCounts(pool: Pool, take = countChangesMax): Promise<boolean> {
  return (await compactTransactionCounts(pool, { take })) === take
}

const transactionAt = sqlFunction('transaction_at', {
  takes: { merchant: 'int', skip: 'bigint' },
  gives: 'bigint?',
})
const transactionOfKindAt = sqlFunction('transaction_of_kind_at', {
  takes: {
    merchant: 'int',
    type: sqlType<string | null>('transaction_type?'),
    method: sqlType<string | null>('provider?'),
    state: sqlType<string | null>('transaction_status?'),
    skip: 'bigint',
    take: 'bigint',
  },
  gives: { oldest: 'bigint?', newest: 'bigint?' },
})

/** The location of a page: the rows with ids from `gte` to `lte`, or the rows after `skip` others. */
export interface PageWindow {
  id?: { gte?: bigint; lte: bigint }
  skip: number
}

/**
 * Finds the page after `skip` rows of a list, newest first. For a filter by type, operator and status only,
 * the counts give the ids of the page, so the cost does not grow with `skip`. For other filters, the database
 * skips the rows one by one.
 * @param page.skip rows before the page, counted over the whole list
 * @param page.take rows of the page
 * @returns null where the counts show that the list has no such rows
 */
export async function findPage(
  ctx: Context,
  raw: TransactionFilter | null | undefined,
  page: { skip: number; take: number },
): Promise<PageWindow | null> {
  const { skip, take } = page
  const kind = kindOf(ctx, raw)
  if (!kind) return { skip }
  const [merchant, ...kinds] = kind
  const isEvery = kinds.every((each) => each === null)
  if (isEvery && skip < offsetNearMax) return { skip }
  const { merchantPool } = ctx.database
  const [type, method, state] = kinds
  // Ask for extra rows: rows may leave the status before the page is read, and the page must not get too
  // short.
  const asked = { merchant, type, method, state, skip, take: take + limits.pageSizeMax }
  const [found] = isEvery
    ? [{ oldest: null, newest: await transactionAt(merchantPool, { merchant, skip }) }]
    : await transactionOfKindAt(merchantPool, asked)
  const { oldest = null, newest = null } = found ?? {}
  return newest === null ? null : { id: { lte: newest, ...(oldest !== null && { gte: oldest }) }, skip: 0 }
}

const isOfKind = `merchant_id = $1 AND ($2::transaction_type IS NULL OR transaction_type = $2)
  AND ($3::provider IS NULL OR payment_method = $3) AND ($4::transaction_status IS NULL OR status = $4)`

type Kind = [merchantId: number, type: string | null, method: string | null, status: string | null]

/** Reads type, operator and status from a filter; null where the filter has other conditions. */
function kindOf(ctx: Context, raw: TransactionFilter | null | undefined): Kind | null {
  const filter = readInput(transactionFilterInput, raw ?? {})
  const { transactionType: type, paymentMethod: method, status, ...others } = filter
  if (Object.values(others).some((value) => value != null)) return null
  return [mine(ctx).merchantId, type ?? null, method ?? null, status ?? null]
}
