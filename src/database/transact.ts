import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

/** A conflict with another transaction: everything was undone, and doing it again may well succeed. */
const conflictCodes = new Set(['40001', '40P01'])
const retryPauseMs = 5

/**
 * Runs `work` in one transaction: committed when it returns, undone when it throws. Where PostgreSQL gives up
 * the transaction for the sake of another one (serialization failure, deadlock) it runs again, so `work` must
 * do nothing that a rollback does not undo.
 * @param work gets the connection that carries the transaction
 * @param options.retries how often it runs again, at most
 * @throws whatever `work` throws. An error without a code of PostgreSQL while committing means that the
 *   connection broke: the transaction may or may not have been committed.
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
 * Does all that `work` would do and undoes it: what it would come to is known, and nothing was written. It
 * holds what `work` locks until then.
 */
export async function dryRun<Result>(
  database: { readonly pool: pg.Pool },
  work: (tx: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  let known: { result: Result } | null = null
  const undo = new Error('A rehearsal is undone.')
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
    // After a failed statement that `work` kept to itself, PostgreSQL answers a commit by rolling back.
    if (command !== 'COMMIT')
      throw new Error('The transaction was rolled back: a statement in it had failed.')
    return result
  } catch (error) {
    await tx.query('rollback').catch(() => {
      broken = true
    })
    throw error
  } finally {
    // A connection in an unknown state must not serve anyone again.
    tx.release(broken)
  }
}

/** Whether PostgreSQL undid it all for the sake of another transaction (serialization failure, deadlock). */
export function isConflict(error: unknown): boolean {
  return error instanceof pg.DatabaseError && conflictCodes.has(error.code ?? '')
}
