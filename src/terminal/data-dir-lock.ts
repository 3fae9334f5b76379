import { accessSync, constants, mkdirSync } from 'node:fs'
import pg from 'pg'
import { addressesOf, type Config } from '../config/config.ts'
import { ConfigError } from '../config/parse.ts'
import { asRole } from '../database/client.ts'
import { locks } from '../database/locks.ts'

/**
 * Creates `DATA_DIR` if it is missing and the service will keep something there.
 * @throws ConfigError if this account of the operating system cannot write there
 */
export function openDataDir({ dataDir, databaseUrl, masterSecret, simulator }: Config): void {
  if (databaseUrl && masterSecret && simulator?.url !== null) return
  try {
    mkdirSync(dataDir, { recursive: true })
    accessSync(dataDir, constants.W_OK | constants.X_OK)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new ConfigError(
      `DATA_DIR: this account cannot write in ${dataDir} (${why}). ` +
        'Open it to this account, or choose another folder: DATA_DIR=/some/folder npm start',
    )
  }
}

/** The longest wait for the lock: a service that was killed a moment ago may still hold it. */
const waitMs = 1_500

/**
 * Locks the data folder, so that only one sandbox at a time uses it: the simulated operators of each of two
 * sandboxes would know only some of the payments. A session holds the lock until this process or PostgreSQL
 * ends.
 * @param connection to the embedded database of the folder
 * @throws Error with a message for a person, with the address of the other sandbox
 */
export async function lockDataDir(connection: pg.ClientConfig, config: Config): Promise<void> {
  const { publicUrl } = addressesOf(config, config.port)
  const client = new pg.Client({ ...asRole(connection, null), application_name: publicUrl })
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query(`set lock_timeout = ${waitMs}`)
    await client.query('select pg_advisory_lock($1)', [locks.sandboxOperators])
  } catch (error) {
    if (!(error instanceof pg.DatabaseError && error.code === '55P03')) throw error
    const { rows } = await client.query<{ url: string }>(
      `select application_name as url from pg_locks join pg_stat_activity using (pid)
       where locktype = 'advisory' and granted and classid = 0 and objid = $1`,
      [locks.sandboxOperators],
    )
    await client.end()
    const where = rows[0] ? `, at ${rows[0].url}` : ''
    throw new Error(
      `The sandbox in ${config.dataDir} is open already${where}. End it first, ` +
        `or open another one beside it: DATA_DIR=.data-2 PORT=${config.port + 1} npm start`,
      { cause: error },
    )
  }
}
