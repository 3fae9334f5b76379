import { chown, lstat, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import {
  type BackupFile,
  copyHashed,
  epochOf,
  exists,
  forEachFile,
  hashOf,
  type Manifest,
  makeBackupFolder,
  secretName,
  syncFolder,
  verifyBackup,
  writeManifest,
} from './backup-files.ts'
import { readPostmaster } from './embedded-keepalive.ts'
import { bundledMajor, clusterOwner } from './embedded-cluster.ts'

/**
 * The folders of PostgreSQL that a backup leaves empty: their content belongs to a running server, or is
 * copied separately (the write-ahead log).
 */
const emptied: ReadonlySet<string> = new Set([
  'pg_dynshmem',
  'pg_notify',
  'pg_replslot',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
  'pg_wal',
])
const leftOut =
  /^(postmaster\.(pid|opts)|pg_internal\.init.*|pgsql_tmp.*|backup_(label|manifest)|tablespace_map)$/
const clusterName = 'cluster'
const stepLock = 'restore-under-way.json'

/** The settings of one backup or restore. */
interface BackupOptions {
  /** `DATA_DIR`. */
  dataDir: string
  folder: string
  /** Whether the master secret is the file in `DATA_DIR`. */
  withSecret: boolean
  /** `false` only in tests: a crash of the machine could then damage the copy. */
  durable: boolean
  say: (line: string) => void
}

/**
 * Copies the embedded database, while the service runs or not, with the part of the write-ahead log that
 * makes the copy consistent, and the master secret. An interrupted copy has no manifest, and a restore
 * refuses it.
 * @param connection to that database, as its superuser
 */
export async function backUpCluster(
  connection: pg.ClientConfig,
  { dataDir, folder, withSecret, durable, say }: BackupOptions,
): Promise<Manifest> {
  await makeBackupFolder(folder)
  const source = join(dataDir, 'pg', clusterName)
  const target = join(folder, clusterName)
  const copy: Copy = { folder, durable, files: [], folders: [] }
  const client = new pg.Client(connection)
  client.on('error', () => {})
  await client.connect()
  try {
    // By default, a session has only the rights of the merchant role.
    await client.query('set role none')
    const secret = join(dataDir, secretName)
    if (withSecret && !(await copyFile(copy, secret, secretName)))
      throw new Error(`${secret} is missing: a backup without the master secret is worthless.`)
    const epoch = await epochOf(client)
    const start = await beginBackup(client)
    say('Copying the data folder ...')
    const found = await makeTree(copy, source, clusterName)
    // A missing file belongs to a table that was dropped meanwhile; the write-ahead log records the drop.
    await forEachFile(found, async ([from, path]) => void (await copyFile(copy, from, path)))
    const stop = await client.query<{ label: string; last: string; major: number }>(
      `SELECT s.labelfile AS label, pg_walfile_name(s.lsn) AS last,
         current_setting('server_version_num')::int / 10000 AS major
       FROM pg_backup_stop(false) s`,
    )
    const [end] = stop.rows
    if (!end) throw new Error('PostgreSQL did not end the backup.')
    await copyLog(copy, source, start, end.last)
    await writeFile(join(target, 'backup_label'), end.label, { mode: 0o600, flush: true })
    const label = `${clusterName}/backup_label`
    copy.files.push({ path: label, ...(await hashOf(join(folder, label))) })
    const manifest: Manifest = {
      format: 1,
      kind: 'cluster',
      takenAt: new Date().toISOString(),
      postgres: end.major,
      epoch,
      hasSecret: withSecret,
      files: copy.files,
      folders: copy.folders,
    }
    await writeManifest(folder, manifest)
    return manifest
  } finally {
    await client.end()
  }
}

/**
 * Begins a backup. All its statements share one session, so that PostgreSQL ends the backup if this process
 * is killed.
 * @returns the name of the first log file that the backup needs
 */
async function beginBackup(client: pg.Client): Promise<string> {
  // The replication slot keeps the needed log files until this session ends.
  await client.query(`SELECT pg_create_physical_replication_slot($1, true, true)`, [
    `merchant_payments_backup_${process.pid}`,
  ])
  const { rows } = await client.query<{ first: string }>(
    `SELECT pg_walfile_name(pg_backup_start('merchant-payments', true)) AS first`,
  )
  return rows[0]?.first ?? ''
}

interface Copy {
  folder: string
  durable: boolean
  files: BackupFile[]
  folders: string[]
}

/** Makes the folders of a copy. @returns the files to copy, each with its path in the backup */
async function makeTree(copy: Copy, from: string, name: string): Promise<[from: string, path: string][]> {
  const found: [string, string][] = []
  await mkdir(join(copy.folder, name), { mode: 0o700 })
  copy.folders.push(name)
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (leftOut.test(entry.name)) continue
    const path = `${name}/${entry.name}`
    if (entry.isSymbolicLink())
      throw new Error(`${join(from, entry.name)} is a link: a backup of other folders is not supported.`)
    if (entry.isFile()) found.push([join(from, entry.name), path])
    if (!entry.isDirectory()) continue
    if (!emptied.has(entry.name)) {
      found.push(...(await makeTree(copy, join(from, entry.name), path)))
      continue
    }
    await mkdir(join(copy.folder, path), { mode: 0o700 })
    copy.folders.push(path)
  }
  return found
}

async function copyLog(copy: Copy, source: string, first: string, last: string): Promise<void> {
  const wal = join(source, 'pg_wal')
  const names = (await readdir(wal)).filter(
    (name) => (/^[0-9A-F]{24}$/.test(name) && name >= first && name <= last) || name.endsWith('.history'),
  )
  const removed = 'PostgreSQL has removed log files that the backup needs: take another backup.'
  if (!names.includes(first) || !names.includes(last)) throw new Error(removed)
  for (const name of names) {
    if (!(await copyFile(copy, join(wal, name), `${clusterName}/pg_wal/${name}`))) throw new Error(removed)
  }
}

/** @returns false where the file is missing */
async function copyFile(copy: Copy, from: string, path: string): Promise<boolean> {
  const written = await copyHashed(from, join(copy.folder, path), copy.durable)
  if (written) copy.files.push({ path, ...written })
  return written !== null
}

/**
 * Replaces the embedded database by a backup. The old data is moved aside, never deleted. The restored server
 * continues on a new timeline, by which the next start notices the restore.
 * @returns the manifest, and the folder of the old data (`aside`); null where there was none
 * @throws Error in one sentence where the backup is incomplete or does not fit (of an external PostgreSQL, of
 * another version), or where a server uses the folder
 */
export async function restoreCluster(
  options: BackupOptions,
): Promise<{ manifest: Manifest; aside: string | null }> {
  const { dataDir, folder, withSecret, say } = options
  say('Verifying the backup ...')
  const manifest = await verifyBackup(folder)
  if (manifest.kind !== 'cluster')
    throw new Error(
      `${folder} is a backup of an external PostgreSQL: name an empty database in DATABASE_URL.`,
    )
  const major = bundledMajor()
  if (manifest.postgres !== major)
    throw new Error(`${folder} is of PostgreSQL ${manifest.postgres}, and this version brings ${major}.`)
  assertStopped(dataDir)
  await mkdir(dataDir, { recursive: true })
  say('Copying the backup ...')
  const fresh = join(dataDir, 'pg.restoring')
  await rm(fresh, { recursive: true, force: true })
  const owner = clusterOwner(join(dataDir, 'pg'))
  await mkdir(fresh, { mode: 0o700 })
  await give(fresh, owner)
  await copyBack(options, manifest, fresh, owner)
  await beRecovered(join(fresh, clusterName), owner)
  assertStopped(dataDir)
  const aside = await swap(options, manifest, fresh)
  if (manifest.hasSecret && !withSecret)
    say('The backup has a master secret, and SECRET_KEY is set: SECRET_KEY counts.')
  return { manifest, aside }
}

/**
 * @throws Error where a PostgreSQL server uses the folder, also a server that is stopping, or that a
 * command started
 */
function assertStopped(dataDir: string): void {
  const server = readPostmaster(join(dataDir, 'pg', clusterName))
  if (server)
    throw new Error(`PostgreSQL (pid ${server.pid}) runs in ${dataDir}: stop the service there first.`)
}

type Owner = { uid: number; gid: number } | null

async function give(path: string, owner: Owner): Promise<void> {
  if (owner) await chown(path, owner.uid, owner.gid)
}

async function copyBack(
  { folder, durable }: BackupOptions,
  manifest: Manifest,
  fresh: string,
  owner: Owner,
): Promise<void> {
  for (const name of manifest.folders) {
    await mkdir(join(fresh, name), { mode: 0o700 })
    await give(join(fresh, name), owner)
  }
  const ours = manifest.files.filter(({ path }) => path.startsWith(`${clusterName}/`))
  await forEachFile(ours, async ({ path, sha256 }) => {
    const written = await copyHashed(join(folder, path), join(fresh, path), durable)
    if (written?.sha256 !== sha256) throw new Error(`${path} in ${folder} changed while it was copied.`)
    await give(join(fresh, path), owner)
  })
  await forEachFile(manifest.folders, (name) => syncFolder(join(fresh, name)))
}

/**
 * Sets the cluster up for recovery: PostgreSQL replays the log of the backup, then begins a new timeline.
 */
async function beRecovered(cluster: string, owner: Owner): Promise<void> {
  const settings = join(cluster, 'postgresql.auto.conf')
  const known = await readFile(settings, 'utf8').catch(() => '')
  const other = known
    .split('\n')
    .filter((line) => line !== '' && !/^(restore_command|hot_standby)\b/.test(line))
  // There is no archive: all needed log files are in pg_wal. No client connects before the recovery ends.
  const text = [...other, `restore_command = 'exit 1'`, `hot_standby = off`, ''].join('\n')
  for (const [path, content] of [
    [settings, text],
    [join(cluster, 'recovery.signal'), ''],
  ] as const) {
    await writeFile(path, content, { mode: 0o600, flush: true })
    await give(path, owner)
  }
  await syncFolder(cluster)
}

/**
 * The record that a restore has begun to rename folders. If this restore is interrupted, the next one
 * completes it.
 */
interface Step {
  /** The suffix of the names of the data that was moved aside. */
  stamp: string
}

async function swap({ dataDir, folder, withSecret }: BackupOptions, manifest: Manifest, fresh: string) {
  const lock = join(dataDir, stepLock)
  const begun = await readStep(dataDir)
  const stamp = begun?.stamp ?? new Date().toISOString().replaceAll(/[:.]/g, '-')
  await writeFile(lock, JSON.stringify({ stamp } satisfies Step), { mode: 0o600, flush: true })
  await syncFolder(dataDir)
  const aside = join(dataDir, `pg.before-restore-${stamp}`)
  // If the old data is aside already, `pg` holds a restored copy that was never started.
  if (await exists(aside)) await rm(join(dataDir, 'pg'), { recursive: true, force: true })
  else if (await exists(join(dataDir, 'pg'))) await rename(join(dataDir, 'pg'), aside)
  await rename(fresh, join(dataDir, 'pg'))
  if (manifest.hasSecret && withSecret) await putSecret(dataDir, folder, stamp)
  await syncFolder(dataDir)
  await rm(lock)
  await syncFolder(dataDir)
  return (await exists(aside)) ? aside : null
}

async function putSecret(dataDir: string, folder: string, stamp: string): Promise<void> {
  const [path, old] = [join(dataDir, secretName), join(dataDir, `${secretName}.before-restore-${stamp}`)]
  const wanted = await readFile(join(folder, secretName), 'utf8')
  const there = await readFile(path, 'utf8').catch(() => null)
  if (there === wanted) return
  if (there !== null && !(await exists(old))) await rename(path, old)
  const draft = `${path}.restoring`
  await writeFile(draft, wanted, { mode: 0o600, flush: true })
  await rename(draft, path)
}

async function readStep(dataDir: string): Promise<Step | null> {
  try {
    return JSON.parse(await readFile(join(dataDir, stepLock), 'utf8')) as Step
  } catch {
    return (await exists(join(dataDir, stepLock))) ? { stamp: 'broken-off' } : null
  }
}

/**
 * @throws Error where a restore into this folder was interrupted: the folder may hold parts of the old and
 * the new database
 */
export async function assertNoHalfRestore(dataDir: string): Promise<void> {
  const found = await lstat(join(dataDir, stepLock)).catch(() => null)
  if (found)
    throw new Error(
      `A restore into ${dataDir} was broken off: run "npm run admin -- restore --from ..." again.`,
    )
}
