import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { readConfig } from '../config/config.ts'
import { assertNoHalfRestore, backUpCluster, restoreCluster } from '../database/backup-embedded.ts'
import { dumpDatabase, loadDump } from '../database/backup-external.ts'
import type { Manifest } from '../database/backup-files.ts'
import { openServer } from './run.ts'

/** The result of a command that needs no service. */
interface Done {
  answer: object
  words: string
}

const say = (line: string) => process.stderr.write(`${line}\n`)

/**
 * Backs up the database, and the master secret if it is a file, into a new folder, beside a running service
 * or without one.
 * @throws Error with a message for a person
 */
export async function backUp({ to }: { to?: string | undefined }): Promise<Done> {
  if (!to) throw new Error('--to is missing: the folder that the backup is written into.')
  const config = readConfig()
  const { dataDir, databaseUrl, masterSecret } = config
  const folder = resolve(to)
  const withSecret = masterSecret === null
  if (databaseUrl) {
    const secretPath = withSecret ? join(dataDir, 'secret.key') : null
    return report(folder, await dumpDatabase(databaseUrl.reveal(), { folder, secretPath, say }))
  }
  if (!existsSync(join(dataDir, 'pg')))
    throw new Error(`There is no database in ${dataDir}: set the DATA_DIR of the service.`)
  await assertNoHalfRestore(dataDir)
  const server = await openServer(config, () => {})
  try {
    return report(
      folder,
      await backUpCluster(server.connection, { dataDir, folder, withSecret, durable: true, say }),
    )
  } finally {
    await server.stop()
  }
}

function report(folder: string, { takenAt, files, hasSecret, epoch }: Manifest): Done {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  const size = `${(bytes / 1_000_000).toFixed(1)} MB`
  const secret = hasSecret
    ? 'The master secret is in it: keep the backup as safe as the secret.'
    : 'SECRET_KEY is not in it: keep it yourself, because the backup cannot be used without it.'
  return {
    answer: { path: folder, taken_at: takenAt, bytes, epoch, has_secret: hasSecret },
    words: `Backup in ${folder}, ${size}, with a checksum of each file.\n${secret}`,
  }
}

/**
 * Replaces the database by a backup. No other program may use the database meanwhile.
 * @throws Error with a message for a person
 */
export async function restore({ from }: { from?: string | undefined }): Promise<Done> {
  if (!from) throw new Error('--from is missing: the folder of the backup.')
  const { dataDir, databaseUrl, masterSecret } = readConfig()
  const folder = resolve(from)
  const withSecret = masterSecret === null
  const { manifest, aside } = databaseUrl
    ? { manifest: await loadDump(databaseUrl.reveal(), { folder, say }), aside: null }
    : await restoreCluster({ dataDir, folder, withSecret, durable: true, say })
  const secret =
    databaseUrl && manifest.hasSecret ? [`The master secret is in ${join(folder, 'secret.key')}.`] : []
  return {
    answer: { from: folder, taken_at: manifest.takenAt, moved_aside: aside },
    words: [
      `The backup of ${manifest.takenAt} is in place.`,
      ...(aside ? [`The data that it replaced is in ${aside}.`] : []),
      ...secret,
      'Start the service. No money leaves until you run "npm run admin -- restore accept".',
    ].join('\n'),
  }
}
