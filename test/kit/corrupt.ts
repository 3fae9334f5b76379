import type pg from 'pg'
import { transact } from '../../src/database/transact.ts'

/** Changes rows with every trigger off, as only the owner of the database can. */
export function corrupt(owner: pg.Pool, statement: string, values: unknown[] = []): Promise<number> {
  return transact({ pool: owner }, async (tx) => {
    await tx.query('SET LOCAL session_replication_role = replica')
    return (await tx.query(statement, values)).rowCount ?? 0
  })
}
