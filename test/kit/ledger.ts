import type pg from 'pg'
import { type LedgerProblem, verifyLedger } from '../../src/ledger/verify.ts'

/** Proves the whole books, with a timeout that fits a busy machine. */
export async function proveLedger(pool: pg.Pool): Promise<LedgerProblem[]> {
  const client = await pool.connect()
  try {
    await client.query("SET statement_timeout = '50s'")
    return await verifyLedger(client)
  } finally {
    client.release(true)
  }
}
