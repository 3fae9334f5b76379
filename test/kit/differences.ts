import type pg from 'pg'
import { decideDifference, type Ruling } from '../../src/resources/differences/decide.ts'
import type { Verdict } from '../../src/resources/differences/list.ts'

/** The columns of `settlement_exception` that name a payment. */
export type DifferenceColumn = 'transaction_id' | 'payout_id' | 'recipient_id'

/** Finds the exception about a payment. */
export async function exceptionOf(
  pool: pg.Pool,
  column: DifferenceColumn,
  id: bigint,
): Promise<number | undefined> {
  const { rows } = await pool.query<{ id: number }>(
    `SELECT id FROM settlement_exception WHERE ${column} = $1`,
    [id],
  )
  return rows[0]?.id
}

/** Two people decide the same about the exception of a payment. */
export async function decideTogether(
  database: Parameters<typeof decideDifference>[0]['database'],
  column: DifferenceColumn,
  id: bigint,
  verdict: Verdict,
): Promise<Ruling> {
  const exception = String(await exceptionOf(database.pool, column, id))
  const decideAs = (by: string) =>
    decideDifference({ database }, verdict, { id: exception, by, reason: 'seen' })
  await decideAs('Moussa')
  return decideAs('Awa')
}
