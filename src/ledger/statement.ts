import type { Pool, PoolClient } from 'pg'
import { transact } from '../database/transact.ts'
import { invariant } from '../shared/invariant.ts'
import type { Xof } from '../shared/money.ts'
import type { Balance } from './balance.ts'
import { entryColumns, type LedgerEntry } from './entries.ts'

/**
 * A span of time: from the first moment, inclusive, to the last one, exclusive; null: to the newest entry.
 */
export interface Span {
  from: Date
  to: Date | null
}

export type Holdings = Pick<Balance, 'balance' | 'available' | 'reserved' | 'receivable'>

/** The balance of a merchant before and after a span of time, and the money that came and went in between. */
export interface Statement {
  from: Date
  to: Date
  opening: Holdings
  closing: Holdings
  /** The sum of the changes that raised `available + reserved`. */
  totalIn: Xof
  /** The sum of the changes that lowered it. */
  totalOut: Xof
}

/** One entry with its changes to the merchant's balances. */
export interface StatementLine extends LedgerEntry {
  availableChange: Xof
  reservedChange: Xof
  receivableChange: Xof
}

/** The position of a line in a statement: by time, then by id. */
export type EntryCursor = Pick<LedgerEntry, 'createdAt' | 'id'>

/**
 * Reads the statement of a span without its lines: from the running balance and the entries since, all in one
 * snapshot.
 * @throws Error where opening and lines do not add up to the closing: then the books, or this function, are
 * wrong
 */
export async function readStatement(
  client: Pool | PoolClient,
  merchantId: number,
  { from, to }: Span,
): Promise<Statement> {
  const { rows } = await client.query<StatementRow>({
    name: 'read_statement',
    text: `SELECT coalesce($3::timestamptz, service_now()) AS "to",
        ${holdingsWithout('b', 'since')}, ${holdingsWithout('b', 'later')},
        ${kinds.map((kind) => `lines.${kind} AS lines_${kind}`).join()}, lines.total_in, lines.total_out
      FROM merchant_balance b, ${moved('since', 'created_at >= $2')},
        ${moved('later', 'created_at >= $3::timestamptz')},
        ${moved('lines', "created_at >= $2 AND created_at < coalesce($3::timestamptz, 'infinity')")}
      WHERE b.merchant_id = $1`,
    values: [merchantId, inRange(from), to && inRange(to)],
  })
  const row = rows[0]
  invariant(row, `merchant ${merchantId} has no balance`)
  const [opening, closing] = [holdingsOf(row, 'since'), holdingsOf(row, 'later')]
  for (const kind of kinds) {
    const adds = opening[kind] + row[`lines_${kind}`] === closing[kind]
    invariant(adds, `statement of merchant ${merchantId}: opening and lines are not the closing ${kind}`)
  }
  const { total_in: totalIn, total_out: totalOut } = row
  invariant(
    opening.balance + totalIn - totalOut === closing.balance,
    `statement of merchant ${merchantId}: total in and total out do not make the difference`,
  )
  return { from, to: to ?? row.to, opening, closing, totalIn, totalOut }
}

/**
 * Reads the balance as it was at a moment, before any entry of that moment; for a future moment, the present
 * balance.
 */
export async function readBalanceAt(
  client: Pool | PoolClient,
  merchantId: number,
  at: Date,
): Promise<Balance> {
  const { rows } = await client.query<HoldingsRow<'since'> & { now: Date }>({
    name: 'read_balance_at',
    text: `SELECT service_now() AS now, ${holdingsWithout('b', 'since')}
      FROM merchant_balance b, ${moved('since', 'created_at >= $2')} WHERE b.merchant_id = $1`,
    values: [merchantId, inRange(at)],
  })
  const row = rows[0]
  invariant(row, `merchant ${merchantId} has no balance`)
  return { ...holdingsOf(row, 'since'), asOf: at < row.now ? at : row.now }
}

/**
 * Reads a page of the lines of a statement, oldest first: the entries that change the merchant's balances.
 */
export async function readLines(
  client: Pool | PoolClient,
  merchantId: number,
  { from, to, after, take }: Span & { after: EntryCursor | null; take: number },
): Promise<StatementLine[]> {
  const { rows } = await client.query<StatementLine>({
    name: 'read_statement_lines',
    text: `SELECT ${entryColumns}, ${kinds.map((kind) => `${change[kind]} AS "${kind}Change"`).join()}
      FROM ledger_entry
      WHERE merchant_id = $1 AND created_at < coalesce($3::timestamptz, 'infinity')
        AND (created_at, id) >= ($2, $4) AND ${touches}
      ORDER BY created_at, id LIMIT $5`,
    values: [
      merchantId,
      after?.createdAt ?? inRange(from),
      to && inRange(to),
      after === null ? 0n : after.id + 1n,
      take,
    ],
  })
  return rows
}

/**
 * Reads a page of the lines and, for the last page, the balance at its end, in one snapshot. A caller that
 * adds up all pages can see that an entry was missed which committed late, before the caller's cursor.
 */
export async function readPage(
  pool: Pool,
  merchantId: number,
  page: Span & { after: EntryCursor | null; take: number },
): Promise<{ lines: StatementLine[]; closing: Balance | null }> {
  return transact({ pool }, async (tx) => {
    await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY')
    const lines = await readLines(tx, merchantId, page)
    if (lines.length === page.take) return { lines, closing: null }
    return { lines, closing: await readBalanceAt(tx, merchantId, page.to ?? new Date(endOfTime)) }
  })
}

const kinds = ['available', 'reserved', 'receivable'] as const
type Kind = (typeof kinds)[number]

const holdingAccounts = "('available', 'reserved', 'suspense')"
const touches = `(debit IN ${holdingAccounts} OR credit IN ${holdingAccounts})`
/**
 * SQL for the change that one entry makes to each sum. Credits add to `available` and `reserved`.
 * `receivable` is the amount that the merchant owes (account `suspense`), so debits add to it.
 */
const change: Readonly<Record<Kind, string>> = {
  available: `CASE 'available'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount ELSE 0 END`,
  reserved: `CASE 'reserved'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount ELSE 0 END`,
  receivable: `CASE 'suspense'::ledger_account WHEN debit THEN amount WHEN credit THEN -amount ELSE 0 END`,
}

/** Returns SQL for the sums of a merchant's entries of a span, as a row named `name`. */
function moved(name: string, when: string): string {
  const both = `${change.available} + ${change.reserved}`
  const sum = (what: string) => `coalesce(sum(${what}), 0)::bigint`
  return `LATERAL (
    SELECT ${kinds.map((kind) => `${sum(change[kind])} AS ${kind}`).join()},
      ${sum(`greatest(${both}, 0)`)} AS total_in, ${sum(`greatest(-(${both}), 0)`)} AS total_out
    FROM ledger_entry WHERE merchant_id = $1 AND ${when}) AS ${name}`
}

type HoldingsRow<Since extends string> = Record<`${Since}_${Kind}`, Xof>
type StatementRow = HoldingsRow<'since' | 'later' | 'lines'> & { to: Date; total_in: Xof; total_out: Xof }

/** Returns SQL for the balances before the entries of `since`. */
function holdingsWithout(balance: string, since: string): string {
  return kinds.map((kind) => `${balance}.${kind} - ${since}.${kind} AS ${since}_${kind}`).join()
}

function holdingsOf<Since extends string>(row: HoldingsRow<Since>, since: Since): Holdings {
  const [available, reserved] = [row[`${since}_available`], row[`${since}_reserved`]]
  return { balance: available + reserved, available, reserved, receivable: row[`${since}_receivable`] }
}

/**
 * Limits a date to the years 1970 to 9998, which PostgreSQL surely accepts. This changes no statement: dates
 * outside of the range are before the first entry or after the last.
 */
function inRange(at: Date): Date {
  return new Date(Math.min(Math.max(at.getTime(), 0), endOfTime))
}

const endOfTime = Date.UTC(9_999, 0)
