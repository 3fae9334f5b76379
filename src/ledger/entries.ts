import type { Pool } from 'pg'
import type { Xof } from '../shared/money.ts'
import type { Account, LedgerStep } from './accounts.ts'

/** A movement of money between two accounts of a merchant. */
export interface LedgerEntry {
  id: bigint
  /** What it is about, `transaction:12`. */
  cause: string
  step: LedgerStep
  debit: Account
  credit: Account
  amount: Xof
  createdAt: Date
}

export const entryColumns = 'id, cause, step, debit, credit, amount, created_at AS "createdAt"'

/** The entries of each of these causes, oldest first: one statement for all of them. */
export async function readEntries(
  pool: Pool,
  merchantId: number,
  causes: readonly string[],
): Promise<LedgerEntry[][]> {
  const { rows } = await pool.query<LedgerEntry>({
    name: 'read_entries',
    text: `SELECT ${entryColumns} FROM movement WHERE cause = ANY ($2) AND merchant_id = $1 ORDER BY id`,
    values: [merchantId, causes],
  })
  const byCause = Map.groupBy(rows, ({ cause }) => cause)
  return causes.map((cause) => byCause.get(cause) ?? [])
}
