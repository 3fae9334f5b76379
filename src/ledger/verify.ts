import type { Pool, PoolClient, QueryConfig } from 'pg'
import { transact } from '../database/transact.ts'

/** What does not add up, and for whom. */
export interface LedgerProblem {
  merchantId: number
  problem: string
}

const timeoutMs = 50_000

/**
 * The proof: rebuilds every balance from its movements and holds every paid collection against its one
 * credit, all in one snapshot. Writes nothing.
 * @returns what does not add up; empty means that the ledger holds
 */
export async function verifyLedger(client: Pool | PoolClient): Promise<LedgerProblem[]> {
  const { rows } = await client.query<LedgerProblem>({
    text: 'SELECT merchant_id AS "merchantId", problem FROM verify_ledger()',
    // It reads every movement: no time but the statement's own.
    query_timeout: timeoutMs + 2_000,
  } as QueryConfig)
  return rows
}

/**
 * The same where no other process is at it, with more time than a request has: it reads every movement.
 * @returns null where another process has its turn
 */
export async function verifyLedgerInTurn(database: { readonly pool: Pool }): Promise<LedgerProblem[] | null> {
  return transact(database, async (tx) => {
    const { rows } = await tx.query<{ free: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS free', [
      turnLock,
    ])
    if (!rows[0]?.free) return null
    await tx.query(`SET LOCAL statement_timeout = '${timeoutMs}ms'`)
    return verifyLedger(tx)
  })
}

const turnLock = 72_707_372
