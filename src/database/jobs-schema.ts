import pg from 'pg'

/** The number of the last migration of the installed graphile-worker; once it is applied, none is missing. */
export const jobsSchemaVersion = 20

/**
 * Brings the tables of the job engine up to date with the library's own migrations. Loads the library only
 * where tables are missing or older.
 * @param client the owner's session, which holds the lock of migrations
 * @returns whether the tables were changed
 */
export async function migrateJobs(
  client: pg.ClientBase,
  connection: pg.ClientConfig | string,
): Promise<boolean> {
  if ((await readVersion(client)) >= jobsSchemaVersion) return false
  const { runMigrations, Logger } = await import('graphile-worker')
  const config = typeof connection === 'string' ? { connectionString: connection } : connection
  const pgPool = new pg.Pool({ ...config, max: 1 })
  // A broken connection shows in the statement that fails.
  pgPool.on('error', () => {})
  pgPool.on('connect', (session) => session.on('error', () => {}))
  try {
    const worker = { schema: 'graphile_worker', maxPoolSize: 1, logger: new Logger(() => () => undefined) }
    await runMigrations({ pgPool, preset: { worker } })
  } finally {
    await pgPool.end()
  }
  return true
}

async function readVersion(client: pg.ClientBase): Promise<number> {
  try {
    const { rows } = await client.query<{ version: number | null }>(
      'select max(id) as version from graphile_worker.migrations',
    )
    return rows[0]?.version ?? 0
  } catch (error) {
    // There is no such schema, or no such table in it.
    if (error instanceof pg.DatabaseError && (error.code === '3F000' || error.code === '42P01')) return 0
    throw error
  }
}
