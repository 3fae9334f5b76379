import type { Pool, PoolClient, QueryConfig } from 'pg'
import { transact } from '../database/transact.ts'
import { limits } from '../shared/limits.ts'
import { haltPaymentsOut } from './payments-out.ts'
import { type LedgerProblem, verifyLedger } from './verify.ts'

/** What an audit found. */
export interface Audit {
  problems: LedgerProblem[]
  /** Whether it read the books from their first row. */
  whole: boolean
}

/**
 * Proves the books, one process at a time: what was written since the last proof, and once a day all of it.
 * What seems wrong is looked at again from the first row; what is wrong then stops payments out, until a
 * person lets them go on.
 * @param options.whole begins at the first row, and does so beside one that is under way
 * @returns null where another process has its turn
 */
export async function auditLedger(
  database: { readonly pool: Pool },
  options: { whole: boolean },
): Promise<Audit | null> {
  return transact(database, async (tx) => {
    // One snapshot for the proof and for the note of how far it went.
    await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')
    await tx.query(`SET LOCAL statement_timeout = '${limits.auditTimeoutMs}ms'`)
    const { rows } = await tx.query<{ free: boolean; due: boolean }>(turn, [
      turnLock,
      limits.auditWholeEveryMs,
    ])
    if (!rows[0]?.free && !options.whole) return null
    const timeoutMs = limits.auditTimeoutMs
    let whole = options.whole || rows[0]?.due !== false
    let problems = await verifyLedger(tx, { whole, timeoutMs })
    if (problems.length > 0 && !whole) {
      whole = true
      problems = await verifyLedger(tx, { whole, timeoutMs })
    }
    const [worst] = problems
    if (worst) await haltPaymentsOut(tx, `${worst.invariant}: merchant ${worst.merchantId}, ${worst.problem}`)
    else if (rows[0]?.free) await noteAudit(tx, whole, timeoutMs)
    return { problems, whole }
  })
}

/** Sums what the proof has read: over the whole books no ordinary answer. */
async function noteAudit(tx: PoolClient, whole: boolean, timeoutMs: number): Promise<void> {
  const note: QueryConfig & { query_timeout: number } = {
    text: 'SELECT note_audit($1)',
    values: [whole],
    query_timeout: timeoutMs + 2_000,
  }
  await tx.query(note)
}

const turnLock = 72_707_372
const turn = `SELECT pg_try_advisory_xact_lock($1) AS free, NOT EXISTS (
  SELECT FROM audit_point WHERE whole_proven_at > now() - $2 * interval '1 millisecond') AS due`
