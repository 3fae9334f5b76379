import type { Pool } from 'pg'

/** What does not add up, and for whom. */
export interface LedgerProblem {
  merchantId: number
  problem: string
}

/**
 * The proof: rebuilds every balance from its movements and holds every paid collection against its one
 * credit, all in one snapshot. Writes nothing.
 * @returns what does not add up; empty means that the ledger holds
 */
export async function verifyLedger(pool: Pool): Promise<LedgerProblem[]> {
  const { rows } = await pool.query<LedgerProblem>(
    'SELECT merchant_id AS "merchantId", problem FROM verify_ledger()',
  )
  return rows
}
