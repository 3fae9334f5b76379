import type { Pool, PoolClient } from 'pg'
import { type SqlConnection, sqlFunction, sqlType } from '../database/sql-function.ts'
import { transact } from '../database/transact.ts'
import { invariant } from '../shared/invariant.ts'
import type { Xof } from '../shared/money.ts'
import type { Balance } from './balance.ts'
import type { LedgerEntry } from './entries.ts'
import type { Account, LedgerStep } from './accounts.ts'

/** A span of time: it includes `from` and excludes `to`. If `to` is null, it ends with the newest entry. */
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

/** One entry with its changes to the merchant's balances, and the balances right after it. */
export interface StatementLine extends LedgerEntry {
  availableChange: Xof
  reservedChange: Xof
  receivableChange: Xof
  balanceAfter: Holdings
}

/** The position of a line in a statement: by time, then by id. */
export type EntryCursor = Pick<LedgerEntry, 'createdAt' | 'id'>

const statementOf = sqlFunction('statement_of', {
  takes: { merchant: 'int', since: 'timestamptz', upto: 'timestamptz?' },
  gives: {
    endsAt: 'timestamptz',
    openingAvailable: 'bigint',
    openingReserved: 'bigint',
    openingReceivable: 'bigint',
    closingAvailable: 'bigint',
    closingReserved: 'bigint',
    closingReceivable: 'bigint',
    totalIn: 'bigint',
    totalOut: 'bigint',
    isRunning: 'boolean',
  },
})
const statementLines = sqlFunction('statement_lines', {
  takes: { merchant: 'int', since: 'timestamptz', firstId: 'bigint', upto: 'timestamptz?', take: 'int' },
  gives: {
    id: 'bigint',
    origin: 'text',
    step: sqlType<LedgerStep>('ledger_step'),
    debit: sqlType<Account>('ledger_account'),
    credit: sqlType<Account>('ledger_account'),
    amount: 'bigint',
    createdAt: 'timestamptz',
    availableChange: 'bigint',
    reservedChange: 'bigint',
    receivableChange: 'bigint',
    available: 'bigint',
    reserved: 'bigint',
    receivable: 'bigint',
  },
})
const balanceAt = sqlFunction('balance_at', {
  takes: { merchant: 'int', moment: 'timestamptz' },
  gives: { available: 'bigint', reserved: 'bigint', receivable: 'bigint', readAt: 'timestamptz' },
})

/**
 * Reads the statement of a span without its lines, in one snapshot: the balances before both of its ends.
 * @throws Error where totals and balances disagree, or the closing of a statement without an end is not the
 * running balance: then the books, or this function, are wrong
 */
export async function readStatement(
  client: SqlConnection,
  merchantId: number,
  { from, to }: Span,
): Promise<Statement> {
  const [row] = await statementOf(client, {
    merchant: merchantId,
    since: inRange(from),
    upto: to && inRange(to),
  })
  invariant(row, `merchant ${merchantId} has no balance`)
  const opening = holdings(row.openingAvailable, row.openingReserved, row.openingReceivable)
  const closing = holdings(row.closingAvailable, row.closingReserved, row.closingReceivable)
  invariant(
    to !== null || row.isRunning,
    `statement of merchant ${merchantId}: the closing is not the running balance`,
  )
  const { totalIn, totalOut } = row
  invariant(
    opening.balance + totalIn - totalOut === closing.balance,
    `statement of merchant ${merchantId}: total in and total out do not make the difference`,
  )
  return { from, to: to ?? row.endsAt, opening, closing, totalIn, totalOut }
}

/**
 * Reads the balance as it was at a moment, before any entry of that moment; for a future moment, the present
 * balance.
 */
export async function readBalanceAt(client: SqlConnection, merchantId: number, at: Date): Promise<Balance> {
  const [row] = await balanceAt(client, { merchant: merchantId, moment: inRange(at) })
  invariant(row, `merchant ${merchantId} has no balance`)
  const asOf = at < row.readAt ? at : row.readAt
  return { ...holdings(row.available, row.reserved, row.receivable), asOf }
}

type LinePage = Span & { after: EntryCursor | null; take: number }

/**
 * Reads a page of the lines of a statement, oldest first: the entries that change the merchant's balances.
 */
export async function readLines(
  client: SqlConnection,
  merchantId: number,
  { from, to, after, take }: LinePage,
): Promise<StatementLine[]> {
  const rows = await statementLines(client, {
    merchant: merchantId,
    since: after?.createdAt ?? inRange(from),
    firstId: after === null ? 0n : after.id + 1n,
    upto: to && inRange(to),
    take,
  })
  return rows.map(({ available, reserved, receivable, ...line }) => ({
    ...line,
    balanceAfter: holdings(available, reserved, receivable),
  }))
}

export async function countLines(
  client: Pool | PoolClient,
  merchantId: number,
  { from, to }: Span,
): Promise<number> {
  const { rows } = await client.query<{ n: bigint }>({
    name: 'count_statement_lines',
    text: `SELECT count(*) AS n FROM ledger_entry
      WHERE merchant_id = $1 AND created_at >= $2 AND created_at < coalesce($3::timestamptz, 'infinity')
        AND (debit IN ('available', 'reserved', 'suspense')
          OR credit IN ('available', 'reserved', 'suspense'))`,
    values: [merchantId, inRange(from), to && inRange(to)],
  })
  return Number(rows[0]?.n ?? 0n)
}

/**
 * Reads a page of the lines and, for the last page, the balance at its end, in one snapshot. A caller that
 * adds up all pages can notice a missed entry: it was committed late, with a time before the caller's cursor.
 */
export async function readPage(
  pool: Pool,
  merchantId: number,
  page: LinePage,
): Promise<{ lines: StatementLine[]; closing: Balance | null }> {
  return transact({ pool }, async (tx) => {
    await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY')
    const lines = await readLines(tx, merchantId, page)
    if (lines.length === page.take) return { lines, closing: null }
    return { lines, closing: await readBalanceAt(tx, merchantId, page.to ?? new Date(endOfTime)) }
  })
}

function holdings(available: Xof, reserved: Xof, receivable: Xof): Holdings {
  return { balance: available + reserved, available, reserved, receivable }
}

/**
 * Limits a date to the years 1970 to 9998, which PostgreSQL surely accepts. This changes no statement: dates
 * outside of the range are before the first entry or after the last.
 */
function inRange(at: Date): Date {
  return new Date(Math.min(Math.max(at.getTime(), 0), endOfTime))
}

const endOfTime = Date.UTC(9_999, 0)
