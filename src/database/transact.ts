import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

/**
 * The codes of conflicts with another transaction: PostgreSQL rolled everything back, and a retry may
 * succeed.
 */
const conflictCodes = new Set(['40001', '40P01'])
const retryPauseMs = 5

/**
 * Runs `work` in one transaction: committed when it returns, rolled back when it throws. Where PostgreSQL
 * rolls the transaction back because of another one (serialization failure, deadlock), `work` runs again, so
 * `work` must do nothing that a rollback does not undo.
 * @param work gets the connection of the transaction
 * @param options.retries how often it runs again, at most
 * @throws the error of `work`. An error without a PostgreSQL code during the commit means that the connection
 * broke: the transaction may or may not be committed.
 */
export async function transact<Result>(
  database: { readonly pool: pg.Pool },
  work: (tx: pg.PoolClient) => Promise<Result>,
  { retries = 3 }: { retries?: number } = {},
): Promise<Result> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await runOnce(database.pool, work)
    } catch (error) {
      if (attempt >= retries || !isConflict(error)) throw error
    }
    await sleep(Math.random() * retryPauseMs * 2 ** attempt)
  }
}

/**
 * Runs `work` in a transaction and rolls it back: the result is known, and nothing was written. The locks of
 * `work` are held until the rollback.
 */
export async function dryRun<Result>(
  database: { readonly pool: pg.Pool },
  work: (tx: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  let known: { result: Result } | null = null
  const undo = new Error('A dry run is rolled back.')
  try {
    await transact(database, async (tx) => {
      known = { result: await work(tx) }
      throw undo
    })
  } catch (error) {
    if (error !== undo) throw error
  }
  return (known as unknown as { result: Result }).result
}

async function runOnce<Result>(pool: pg.Pool, work: (tx: pg.PoolClient) => Promise<Result>): Promise<Result> {
  const tx = await pool.connect()
  let broken = false
  try {
    await tx.query('begin')
    const result = await work(tx)
    const { command } = await tx.query('commit')
    // Where a statement failed and `work` caught the error, PostgreSQL answers the commit with a rollback.
    if (command !== 'COMMIT')
      throw new Error('The transaction was rolled back: a statement in it had failed.')
    return result
  } catch (error) {
    await tx.query('rollback').catch(() => {
      broken = true
    })
    throw error
  } finally {
    // A connection in an unknown state must not be used again.
    tx.release(broken)
  }
}

/** Whether PostgreSQL rolled a transaction back because of another one (serialization failure, deadlock). */
export function isConflict(error: unknown): boolean {
  return error instanceof pg.DatabaseError && conflictCodes.has(error.code ?? '')
}
