import { type ListedTable, totalOf } from '../../database/find-rows.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import type { Pool } from 'pg'
import { z } from 'zod'
import { mine } from '../../identity/callers/actor.ts'
import { type Context, loader } from '../../context.ts'
import {
  amountRange,
  among,
  conditions,
  createdRange,
  searchOf,
  searchText,
  someOf,
  within,
} from '../../shared/filter.ts'
import { oneOf, phone, provider, readInput, reference } from '../../shared/input.ts'
import { smallIdOf } from '../../shared/ids.ts'
import { limits } from '../../shared/limits.ts'
import { type TransactionStatus, transactionStates } from './states.ts'

/**
 * The first offset at which a list without a filter uses the counts. Below it, the rows before the page are
 * skipped one by one.
 */
export const offsetNearMax = 1_000

/** The types of a transaction (see docs/design/rules.md#transactions). */
export const transactionTypes = ['pay', 'deposit', 'balance_check'] as const

/** The filter of a list of transactions (see docs/design/rules.md#transactions). */
export const transactionFilterInput = z.object({
  transactionType: someOf(oneOf(transactionTypes)).nullish(),
  paymentMethod: someOf(provider).nullish(),
  status: someOf(oneOf(transactionStates.statuses)).nullish(),
  reference: reference.nullish(),
  customerPhone: phone.nullish(),
  search: searchText.nullish(),
  paymentLink: smallIdOf('PaymentLink').nullish(),
  ...createdRange,
  ...amountRange,
})
export type TransactionFilter = z.input<typeof transactionFilterInput>

/** The table that a search reads. */
export const transactionTable: ListedTable = { name: 'transaction', amount: 'amount' }

/**
 * Returns the condition of a filter for Prisma. It selects only transactions of the caller's merchant. Prisma
 * cannot express the search of a filter: see `database/find-rows.ts`.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export function transactionsWhere(ctx: Context, raw: TransactionFilter | null | undefined) {
  const filter = readInput(transactionFilterInput, raw ?? {})
  return conditions({
    ...mine(ctx),
    transactionType: among(filter.transactionType),
    paymentMethod: among(filter.paymentMethod),
    status: among(filter.status),
    reference: filter.reference ?? undefined,
    customerPhone: filter.customerPhone ?? undefined,
    paymentLinkId: filter.paymentLink ?? undefined,
    createdAt: within(filter.createdFrom, filter.createdTo),
    amount: within(filter.amountMin, filter.amountMax),
  })
}

/**
 * Counts the transactions that match a filter, exactly. The counts by type, method and status are kept up to
 * date in tables, in all and by hour of creation, and those by link and status; for any other filter this
 * counts the rows.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export async function countTransactions(
  ctx: Context,
  raw: TransactionFilter | null | undefined,
): Promise<number> {
  const filter = readInput(transactionFilterInput, raw ?? {})
  const kind = kindOf(ctx, filter)
  const { createdFrom: from, createdTo: to } = filter
  const ofLink = await sumOfLink(ctx, filter)
  if (ofLink) return ofLink.count
  if (!kind) return Number(await totalOfRows(ctx, raw, 'rows'))
  return from || to ? Number(await sumPeriod(ctx, kind, { from, to }, 'n')) : countAll(ctx, kind)
}

/**
 * Adds up the requested amounts of the transactions that match a filter, exactly, in whole francs, as
 * `countTransactions` counts them.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export async function sumTransactions(
  ctx: Context,
  raw: TransactionFilter | null | undefined,
): Promise<bigint> {
  const filter = readInput(transactionFilterInput, raw ?? {})
  const kind = kindOf(ctx, filter)
  const { createdFrom: from, createdTo: to } = filter
  if (kind) return from || to ? sumPeriod(ctx, kind, { from, to }, 'amount') : sumAll(ctx, kind)
  return (await sumOfLink(ctx, filter))?.amount ?? totalOfRows(ctx, raw, 'amounts')
}

type ReadFilter = z.output<typeof transactionFilterInput>

/** Counts and adds up the payments by a link; null where the filter has more than a link and statuses. */
async function sumOfLink(ctx: Context, { paymentLink, status, ...others }: ReadFilter) {
  if (paymentLink == null || Object.values(others).some((value) => value != null)) return null
  return sumLinkPayments(ctx, paymentLink, status ?? null)
}

/** Counts the transactions that match a filter, or adds up their amounts, row by row. */
function totalOfRows(ctx: Context, raw: TransactionFilter | null | undefined, what: 'rows' | 'amounts') {
  const [where, search] = [transactionsWhere(ctx, raw), searchOf(raw?.search)]
  return totalOf(ctx.database.merchantPool, { table: transactionTable, where, search }, what)
}

/** Adds up the amounts of a kind by the figures of days. A check of a balance has the amount 0. */
async function sumAll(ctx: Context, kind: Kind): Promise<bigint> {
  const { rows } = await ctx.database.merchantPool.query<{ amount: bigint }>({
    name: 'transaction_amounts',
    text: `SELECT coalesce(sum(amount), 0)::bigint AS amount FROM (
        SELECT amount FROM payment_figure
        WHERE merchant_id = $1 AND hours = 24 AND kind IN ('pay', 'deposit')
          AND ($2::transaction_type[] IS NULL OR kind::text = ANY ($2::text[]))
          AND ($3::provider[] IS NULL OR payment_method = ANY ($3))
          AND ($4::transaction_status[] IS NULL OR status = ANY ($4))
        UNION ALL SELECT amount FROM transaction_count_change WHERE ${isOfKind}
      ) AS counted`,
    values: kind,
  })
  return rows[0]?.amount ?? 0n
}

async function countAll(ctx: Context, kind: Kind): Promise<number> {
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

/**
 * Counts the payments by a link, and adds up their requested amounts in whole francs, exactly, from the
 * figures of links. One statement does it for all links of an operation.
 * @param statuses only payments with one of these; null for all
 * @throws DomainError UNAUTHENTICATED
 */
export function sumLinkPayments(
  ctx: Context,
  linkId: number,
  statuses: readonly TransactionStatus[] | null,
): Promise<{ count: number; amount: bigint }> {
  const read = async (linkIds: readonly number[]) => {
    const { rows } = await ctx.database.merchantPool.query<{ id: number; n: bigint; amount: bigint }>({
      name: 'link_payments',
      text: `SELECT payment_link_id AS id, sum(n)::bigint AS n, sum(amount)::bigint AS amount FROM (
          SELECT merchant_id, payment_link_id, status, n, amount FROM link_figure
          UNION ALL SELECT merchant_id, payment_link_id, status, n, amount FROM transaction_count_change
        ) AS counted
        WHERE merchant_id = $1 AND payment_link_id = ANY ($2::int[])
          AND ($3::transaction_status[] IS NULL OR status = ANY ($3))
        GROUP BY payment_link_id`,
      values: [mine(ctx).merchantId, linkIds, statuses],
    })
    const sums = new Map(rows.map(({ id, n, amount }) => [id, { count: Number(n), amount }]))
    return linkIds.map((id) => sums.get(id) ?? { count: 0, amount: 0n })
  }
  return loader(ctx, `payments of links ${statuses?.join()}`, read).load(linkId)
}

/** A period of creation; both moments belong to it. */
interface Period {
  from: Date | null | undefined
  to: Date | null | undefined
}

const hourMs = 60 * 60 * 1_000

/**
 * Counts the transactions of a kind in a period, or adds up their amounts: the whole hours by their counts,
 * the rest of the first and the last hour by their rows. One statement reads all of it, in one snapshot.
 */
async function sumPeriod(
  ctx: Context,
  kind: Kind,
  { from, to }: Period,
  column: 'n' | 'amount',
): Promise<bigint> {
  const [start, end] = [from?.getTime() ?? -Infinity, (to?.getTime() ?? Infinity) + 1]
  if (end <= start) return 0n
  const firstHour = Math.ceil(start / hourMs) * hourMs
  // In a period within an hour, the rows up to the end are those before the first whole hour.
  const lastHour = Math.max(Math.floor(end / hourMs) * hourMs, firstHour)
  const rest = [start, Math.min(firstHour, end), Math.max(lastHour, start), end]
  const hours = 'hour >= $5 AND hour < $6'
  const ofRows = column === 'n' ? 'count(*)' : 'coalesce(sum(amount), 0)'
  const { rows } = await ctx.database.merchantPool.query<{ total: bigint }>({
    name: `transaction_total_of_period_${column}`,
    text: `SELECT coalesce(sum(${column}), 0)::bigint AS total FROM (
        SELECT ${column} FROM transaction_hour WHERE ${isOfKind} AND ${hours}
        UNION ALL SELECT ${column} FROM transaction_count_change WHERE ${isOfKind} AND ${hours}
        UNION ALL SELECT ${ofRows} FROM transaction
        WHERE ${isOfKind} AND created_at >= $7 AND created_at < $8
        UNION ALL SELECT ${ofRows} FROM transaction
        WHERE ${isOfKind} AND created_at >= $9 AND created_at < $10
      ) AS counted`,
    values: [...kind, ...[firstHour, lastHour, ...rest].map(momentOf)],
  })
  return rows[0]?.total ?? 0n
}

/** Writes a moment for PostgreSQL, also one outside of the years that it accepts. */
function momentOf(ms: number): string {
  if (ms < 0) return '-infinity'
  return ms > Date.UTC(9_999, 0) ? 'infinity' : new Date(ms).toISOString()
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
const transactionOfKindAt = sqlFunction('transaction_of_kinds_at', {
  takes: {
    merchant: 'int',
    types: sqlType<Words>('transaction_type[]'),
    methods: sqlType<Words>('provider[]'),
    states: sqlType<Words>('transaction_status[]'),
    skip: 'bigint',
    take: 'bigint',
  },
  gives: { oldest: 'bigint?', newest: 'bigint?' },
})

/** The location of a page: after `skip` of the rows with ids from `gte` to `lte`. */
export interface PageWindow {
  id?: { gte?: bigint; lte: bigint }
  skip: number
}

/**
 * Finds the page after `skip` rows of a list, newest first. For a filter by type, operator and status only,
 * the counts give the ids of the page, so the cost does not grow with `skip`. For a period, the hours give
 * the ids between which its rows are. Otherwise, the database skips the rows one by one.
 * @param page.skip rows before the page, counted over the whole list
 * @param page.take rows of the page
 * @param page.isByOffset false where a cursor or the end of the list says where the page begins
 * @returns null where the counts show that the list has no such rows
 */
export async function findPage(
  ctx: Context,
  raw: TransactionFilter | null | undefined,
  page: { skip: number; take: number; isByOffset?: boolean },
): Promise<PageWindow | null> {
  const { skip, take, isByOffset = true } = page
  const filter = readInput(transactionFilterInput, raw ?? {})
  const kind = kindOf(ctx, filter)
  if (!kind) return { skip }
  const { createdFrom: from, createdTo: to } = filter
  if (from || to) return findPeriod(ctx, kind, { from, to }, skip)
  const [merchant, types, methods, states] = kind
  const isEvery = !types && !methods && !states
  if (!isByOffset || (isEvery && skip < offsetNearMax)) return { skip }
  const { merchantPool } = ctx.database
  // Ask for extra rows: rows may leave the status before the page is read, and the page must not get too
  // short.
  const asked = { merchant, types, methods, states, skip, take: take + limits.pageSizeMax }
  const [found] = isEvery
    ? [{ oldest: null, newest: await transactionAt(merchantPool, { merchant, skip }) }]
    : await transactionOfKindAt(merchantPool, asked)
  const { oldest = null, newest = null } = found ?? {}
  return newest === null ? null : { id: { lte: newest, ...(oldest !== null && { gte: oldest }) }, skip: 0 }
}

/**
 * Finds the ids between which all transactions of a kind and a period are. A period that has every
 * transaction of the merchant needs no ids, so its hours are not read.
 */
async function findPeriod(
  ctx: Context,
  kind: Kind,
  { from, to }: Period,
  skip: number,
): Promise<PageWindow | null> {
  const hours = 'hour > $5 AND hour <= $6 AND (SELECT is_bounded FROM asked)'
  const { rows } = await ctx.database.merchantPool.query<{
    isBounded: boolean
    first: bigint | null
    last: bigint | null
  }>({
    name: 'transactions_of_period',
    text: `WITH asked AS MATERIALIZED (
        SELECT $2::transaction_type[] IS NOT NULL OR $3::provider[] IS NOT NULL
          OR $4::transaction_status[] IS NOT NULL
          OR ((SELECT min(hour) FROM transaction_hour WHERE merchant_id = $1) <= $5) IS TRUE
          OR ((SELECT max(hour) FROM transaction_hour WHERE merchant_id = $1) > $6) IS TRUE AS is_bounded)
      SELECT (SELECT is_bounded FROM asked) AS "isBounded",
        min(first_bucket) * 1024 AS first, max(last_bucket) * 1024 + 1023 AS last FROM (
        SELECT first_bucket, last_bucket FROM transaction_hour WHERE ${isOfKind} AND ${hours}
        UNION ALL SELECT bucket, bucket FROM transaction_count_change WHERE ${isOfKind} AND ${hours}
      ) AS counted`,
    values: [...kind, momentOf((from?.getTime() ?? -Infinity) - hourMs), momentOf(to?.getTime() ?? Infinity)],
  })
  const { isBounded = true, first = null, last = null } = rows[0] ?? {}
  if (!isBounded) return { skip }
  return first === null || last === null ? null : { id: { gte: first, lte: last }, skip }
}

const isOfKind = `merchant_id = $1 AND ($2::transaction_type[] IS NULL OR transaction_type = ANY ($2))
  AND ($3::provider[] IS NULL OR payment_method = ANY ($3))
  AND ($4::transaction_status[] IS NULL OR status = ANY ($4))`

type Words = readonly string[] | null
type Kind = [merchantId: number, types: Words, methods: Words, statuses: Words]

/** Reads types, operators and statuses from a filter; null where it has more than these and a period. */
function kindOf(ctx: Context, filter: ReadFilter): Kind | null {
  const { transactionType: types, paymentMethod: methods, status: states, ...rest } = filter
  const { createdFrom: _from, createdTo: _to, ...others } = rest
  if (Object.values(others).some((value) => value != null)) return null
  return [mine(ctx).merchantId, types ?? null, methods ?? null, states ?? null]
}
