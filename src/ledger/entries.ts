import type { Pool } from 'pg'
import type { Xof } from '../shared/money.ts'
import type { Account, LedgerStep } from './accounts.ts'

/** One ledger entry: a movement of money between two accounts of a merchant. */
export interface LedgerEntry {
  id: bigint
  /** The origin of the entry, such as `transaction:12`. */
  origin: string
  step: LedgerStep
  debit: Account
  credit: Account
  amount: Xof
  createdAt: Date
}

/** Reads the entries of each of these origins, oldest first, in one statement. */
export async function readEntries(
  pool: Pool,
  merchantId: number,
  origins: readonly string[],
): Promise<LedgerEntry[][]> {
  const { rows } = await pool.query<LedgerEntry>({
    name: 'read_entries',
    text: `SELECT id, origin, step, debit, credit, amount, created_at AS "createdAt" FROM ledger_entry
      WHERE origin = ANY ($2) AND merchant_id = $1 ORDER BY id`,
    values: [merchantId, origins],
  })
  const byOrigin = Map.groupBy(rows, ({ origin }) => origin)
  return origins.map((origin) => byOrigin.get(origin) ?? [])
}
