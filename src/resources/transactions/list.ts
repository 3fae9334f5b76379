import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import type { Pool } from 'pg'
import { z } from 'zod'
import { mine } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import { oneOf, phone, provider, readInput, reference, time } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import { transactionStates } from './states.ts'

/** Rows that are passed over without asking the counts where the page lies. */
export const offsetNearMax = 1_000

/** What a transaction can be (specification: Transaction). */
export const transactionTypes = ['pay', 'deposit', 'balance_check'] as const

/** Which transactions a list shows (decisions: GET /transactions). */
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

/**
 * How many transactions a filter means, exactly. Type, method and status are counted as they change; for
 * anything else the rows are counted.
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

const fold = sqlFunction('compact_transaction_counts', { takes: { take: 'int' }, gives: 'int' })

/** Adds what changed in the numbers of transactions to their counts. @returns how many changes that were */
export function compactCounts(pool: Pool): Promise<number> {
  return fold(pool, { take: limits.countsCompactMax })
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

/** Where a page lies: at or below an id, or behind some rows that are passed over one by one. */
export interface PageWindow {
  id?: { gte?: bigint; lte: bigint }
  skip: number
}

/**
 * Where the page behind `skip` rows of a list lies, newest first, at the same cost however deep it is.
 * @param page.skip rows before it, over the whole list
 * @param page.take its rows
 * @returns null where the list has no such rows
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
  // Some rows more: one that another status took away meanwhile must not end the list.
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

/** The counted kind that a filter means; null where it asks for more than that. */
function kindOf(ctx: Context, raw: TransactionFilter | null | undefined): Kind | null {
  const filter = readInput(transactionFilterInput, raw ?? {})
  const { transactionType: type, paymentMethod: method, status, ...others } = filter
  if (Object.values(others).some((value) => value != null)) return null
  return [mine(ctx).merchantId, type ?? null, method ?? null, status ?? null]
}
