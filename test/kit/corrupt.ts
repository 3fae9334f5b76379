import type pg from 'pg'

/** Changes rows with every trigger off, as only the owner of the database can. */
export async function corrupt(owner: pg.Pool, statement: string, values: unknown[] = []): Promise<number> {
  const client = await owner.connect()
  try {
    await client.query('BEGIN')
    await client.query('SET LOCAL session_replication_role = replica')
    const { rowCount } = await client.query(statement, values)
    await client.query('COMMIT')
    return rowCount ?? 0
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}
