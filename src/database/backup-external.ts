import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import pg from 'pg'
import {
  copyHashed,
  epochOf,
  hashOf,
  type Manifest,
  makeBackupFolder,
  secretName,
  syncFile,
  verifyBackup,
  writeManifest,
} from './backup-files.ts'
import { merchantRole } from './merchant-pool.ts'
import { ensureRoles, serviceRole } from './migrate.ts'
import { letOwnerCreate, ownerRole } from './ownership.ts'

// A dump of `pg_dump` alone is no backup of the service: its secrets are of no use without the master secret,
// its tables belong to roles that a new server lacks, and nothing tells whether a copy is whole. This module
// adds the secret, the roles, and a manifest of hashes.

const dumpName = 'database.dump'

/**
 * Dumps an external database with the machine's `pg_dump`, and copies the master secret beside it.
 * @param options.secretPath null where the secret is `SECRET_KEY`, which the administrator keeps
 * @throws Error in one sentence where there is no suitable `pg_dump`, or it fails
 */
export async function dumpDatabase(
  url: string,
  options: { folder: string; secretPath: string | null; say: (line: string) => void },
): Promise<Manifest> {
  const { folder, secretPath, say } = options
  const { major, epoch, owner } = await askServer(url)
  requireClient('pg_dump', major)
  await makeBackupFolder(folder)
  say('Dumping the database ...')
  const dump = join(folder, dumpName)
  // Row-level security applies to the owner of the tables too, and its policy lets the owner see every row.
  const flags = ['--format=custom', '--no-password', '--enable-row-security', `--role=${owner}`]
  await run('pg_dump', [...flags, `--file=${dump}`], url)
  await syncFile(dump)
  const files = [{ path: dumpName, ...(await hashOf(dump)) }]
  if (secretPath !== null) {
    const written = await copyHashed(secretPath, join(folder, secretName))
    if (!written)
      throw new Error(`${secretPath} is missing: a backup without the master secret is worthless.`)
    files.push({ path: secretName, ...written })
  }
  const manifest: Manifest = {
    format: 1,
    kind: 'dump',
    takenAt: new Date().toISOString(),
    postgres: major,
    epoch,
    hasSecret: secretPath !== null,
    files,
    folders: [],
  }
  await writeManifest(folder, manifest)
  return manifest
}

/**
 * Loads a dump into an empty database. The next start notices the restore, because the database has another
 * oid.
 * @throws Error in one sentence where the backup is incomplete, or the database is not empty
 */
export async function loadDump(
  url: string,
  { folder, say }: { folder: string; say: (line: string) => void },
): Promise<Manifest> {
  say('Verifying the backup ...')
  const manifest = await verifyBackup(folder)
  if (manifest.kind !== 'dump')
    throw new Error(`${folder} is a backup of the embedded PostgreSQL: restore it without DATABASE_URL.`)
  const { major, tables } = await askServer(url)
  if (tables > 0)
    throw new Error('The database of DATABASE_URL is not empty: create an empty one and name it there.')
  if (major < manifest.postgres)
    throw new Error(`${folder} is of PostgreSQL ${manifest.postgres}, and the server is an older ${major}.`)
  requireClient('pg_restore', major)
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query('set role none')
    // The dump grants rights to these roles. The owner role loads the dump, and so owns all tables.
    await ensureRoles(client)
    await letOwnerCreate(client, [serviceRole, merchantRole])
  } finally {
    await client.end()
  }
  say('Loading the backup ...')
  const owned = ['--no-owner', `--role=${ownerRole}`]
  const flags = ['--no-password', ...owned, '--exit-on-error', '--single-transaction']
  await run('pg_restore', [...flags, `--dbname=${databaseOf(url)}`, join(folder, dumpName)], url)
  return manifest
}

/** The server's answer about itself and the database. */
interface Answer {
  major: number
  tables: number
  epoch: number
  /** A role that sees every row: the account if it is a superuser, otherwise the owner of the tables. */
  owner: string
}

async function askServer(url: string): Promise<Answer> {
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query('set role none')
    const { rows } = await client.query<Omit<Answer, 'epoch'>>(
      `SELECT current_setting('server_version_num')::int / 10000 AS major,
         (SELECT CASE WHEN r.rolsuper THEN r.rolname ELSE coalesce((SELECT pg_get_userbyid(c.relowner)
             FROM pg_class c WHERE c.oid = to_regclass('public.installation')), r.rolname) END
           FROM pg_roles r WHERE r.rolname = current_user) AS owner,
         (SELECT count(*)::int FROM pg_class c WHERE c.relkind IN ('r', 'p')
           AND c.relnamespace NOT IN
             (SELECT oid FROM pg_namespace WHERE nspname ~ '^pg_|^information_schema$'))
         AS tables`,
    )
    const found = { major: 0, tables: 0, owner: '', ...rows[0] }
    await client.query(`set role ${client.escapeIdentifier(found.owner)}`)
    return { ...found, epoch: await epochOf(client) }
  } finally {
    await client.end()
  }
}

/** @throws Error where the machine has no such program, or an older version than the server */
function requireClient(program: 'pg_dump' | 'pg_restore', major: number): void {
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' })
  const found = Number(/(\d+)/.exec(stdout ?? '')?.[1] ?? 0)
  if (found >= major) return
  const here = found === 0 ? `no ${program}` : `${program} ${found}`
  throw new Error(
    `The server is PostgreSQL ${major}, and this machine has ${here}: install postgresql-client-${major}, ` +
      'or use pgBackRest or the snapshots of your provider (after each return to a snapshot, run ' +
      '"npm run admin -- restore declare").',
  )
}

/**
 * Runs a program. The connection is passed in the environment, because other users of the machine can see the
 * arguments of a command.
 */
async function run(program: string, args: string[], url: string): Promise<void> {
  const { hostname, port, username, password, searchParams } = new URL(url)
  const child = spawn(program, args, {
    env: {
      ...process.env,
      PGHOST: searchParams.get('host') ?? decodeURIComponent(hostname),
      PGPORT: searchParams.get('port') ?? (port || '5432'),
      PGUSER: decodeURIComponent(username),
      PGPASSWORD: decodeURIComponent(password),
      PGDATABASE: databaseOf(url),
      // By default, a session has only the rights of the merchant role.
      PGOPTIONS: '-c role=none',
      ...(searchParams.get('sslmode') && { PGSSLMODE: searchParams.get('sslmode') ?? '' }),
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let complaints = ''
  child.stderr.on('data', (chunk) => (complaints = `${complaints}${String(chunk)}`.slice(-2_000)))
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`${program} failed: ${complaints.trim()}`)
}

function databaseOf(url: string): string {
  return decodeURIComponent(new URL(url).pathname.slice(1))
}
