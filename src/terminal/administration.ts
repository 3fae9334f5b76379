import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { openAccess } from '../identity/callers/authenticate.ts'
import { openMasterSecret } from '../identity/secrets/secrets.ts'
import type { AdminServices } from './administration-context.ts'
import { readConfig } from '../config/config.ts'
import { openDatabase } from '../database/client.ts'
import { startAnnouncer } from '../events/announcer.ts'
import { migrate, serviceRole } from '../database/migrate.ts'
import { openRestores } from '../database/restores.ts'
import { openServer } from './run.ts'
import { createLog } from '../telemetry/log.ts'

/**
 * Opens the services that an administration command needs, and closes them afterwards. The command works
 * beside a running service or without one.
 */
export async function withServices<T>(
  work: (services: AdminServices) => Promise<T>,
  environment?: Readonly<Record<string, string | undefined>>,
): Promise<T> {
  const config = readConfig(environment)
  const log = createLog('error')
  // A `DATA_DIR` without a database was probably mistyped: do not create a database there.
  if (!config.databaseUrl && !existsSync(join(config.dataDir, 'pg'))) {
    throw new Error(
      `There is no database in ${config.dataDir}: start the service there first, or name its DATA_DIR.`,
    )
  }
  const server = await openServer(config, () => {})
  try {
    const { connection } = server
    await migrate(connection)
    const { dataDir } = config
    // The first program that opens a restored database detects the restore, so this one checks too. If it
    // does not know which credentials changed after the backup, it leaves their suspension to the service.
    const restores = await openRestores({
      connection,
      dataDir,
      expectedEpoch: null,
      suspendsUnknown: false,
      log,
    })
    const database = openDatabase({
      connection: server.connection,
      poolMax: 2,
      role: serviceRole,
      log: () => {},
    })
    const announcer = startAnnouncer(database.pool, log)
    try {
      const master = await openMasterSecret(config.masterSecret, config.dataDir)
      const access = await openAccess({ pool: database.pool, master, trustedProxies: [], log })
      try {
        return await work({ config, database, access, restores, progress: showProgress() })
      } finally {
        access.close()
      }
    } finally {
      await announcer.close()
      await database.close()
    }
  } finally {
    await server.stop()
  }
}

/** Makes a function that shows progress on stderr at most every two seconds: a quick command shows none. */
function showProgress(): (words: string) => void {
  let next = performance.now() + progressEveryMs
  return (words) => {
    if (performance.now() < next) return
    next = performance.now() + progressEveryMs
    process.stderr.write(`${words}\n`)
  }
}

const progressEveryMs = 2_000
