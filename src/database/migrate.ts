import { createHash, randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { asOwner } from './client.ts'
import { migrateJobs } from './jobs-schema.ts'
import { merchantRole } from './merchant-pool.ts'

/**
 * The role that the service works under: it owns nothing, and can do only what the migrations grant it. It
 * sees every merchant's rows; what a merchant itself asks for is read under `merchantRole`.
 */
export const serviceRole = 'payments_service'

/** Prisma's own lock and table, so that its command line finds a history it understands. */
const migrationLock = 72_707_369
const historyTable = `create table if not exists _prisma_migrations (
  id varchar(36) primary key not null, checksum varchar(64) not null, finished_at timestamptz,
  migration_name varchar(255) not null, logs text, rolled_back_at timestamptz,
  started_at timestamptz not null default now(), applied_steps_count integer not null default 0)`

/**
 * A migration waits this long for a table that is in use, then undoes itself and tries again after a pause:
 * while it waits every other statement on that table waits behind it, also those of nodes at work.
 */
const lockTimeoutMs = 300
const lockTriesMax = 30
const lockPauseMs = 500
/** PostgreSQL's code for a lock that was not free in time. */
const lockNotAvailable = '55P03'

/** A migration as it stands in its folder. */
export interface Migration {
  name: string
  sql: string
  /** SHA-256 of the file, in hexadecimal. */
  checksum: string
}

/**
 * Brings a database up to date: makes sure that the service's roles exist, then applies each migration that
 * it lacks, in the order of their names and each in a transaction of its own. Any number of nodes may call it
 * at once.
 * @param options.folder holds `NNNN_name/migration.sql`; left out, ours, and the job engine's own before them
 * @param options.lockTries how often a migration tries to get its tables, at most
 * @returns the names of what was applied now
 * @throws Error when a migration was edited after it was applied, when one is half done, or when one fails;
 *   of the failing one nothing stays
 */
export async function migrate(
  connection: pg.ClientConfig | string,
  options: { folder?: string; lockTries?: number; log?: (event: string) => void } = {},
): Promise<{ applied: string[] }> {
  const migrations = readMigrations(options.folder)
  const client = new pg.Client(connection)
  client.on('error', () => {})
  await client.connect()
  try {
    // By a statement: also where the startup options are lost, which the service then says.
    await client.query('set role none')
    await client.query('select pg_advisory_lock($1)', [migrationLock])
    await ensureRoles(client)
    await client.query(historyTable)
    const pending = await findPending(client, migrations, options.log)
    // Ours say who may use its tables.
    if (!options.folder && (await migrateJobs(client, asOwner(connection))))
      options.log?.('Job engine migrated')
    for (const migration of pending) {
      await applyInTurn(client, migration, options.lockTries ?? lockTriesMax)
      options.log?.(`Migration ${migration.name} applied`)
    }
    if (!options.folder) await beginWalled(client)
    return { applied: pending.map(({ name }) => name) }
  } finally {
    // Ends the session, and the lock with it.
    await client.end()
  }
}

/** The migrations of a folder, in the order in which they apply. */
export function readMigrations(
  folder: string = join(import.meta.dirname, '../../prisma/migrations'),
): Migration[] {
  return readdirSync(folder)
    .filter((name) => existsSync(join(folder, name, 'migration.sql')))
    .toSorted()
    .map((name) => {
      const bytes = readFileSync(join(folder, name, 'migration.sql'))
      return { name, sql: bytes.toString(), checksum: createHash('sha256').update(bytes).digest('hex') }
    })
}

async function findPending(
  client: pg.Client,
  migrations: Migration[],
  log: ((event: string) => void) | undefined,
): Promise<Migration[]> {
  const { rows } = await client.query<{ migration_name: string; checksum: string; finished: boolean }>(
    `select migration_name, checksum, finished_at is not null as finished
     from _prisma_migrations where rolled_back_at is null order by migration_name`,
  )
  const known = new Map(migrations.map((migration) => [migration.name, migration]))
  const applied = new Set<string>()
  for (const row of rows) {
    const name = row.migration_name
    if (!row.finished) {
      throw new Error(
        `Migration ${name} is half done: repair the database, then delete its row in _prisma_migrations.`,
      )
    }
    const migration = known.get(name)
    if (!migration) log?.(`The database knows migration ${name}, which this version does not have`)
    else if (migration.checksum !== row.checksum) {
      throw new Error(`Migration ${name} was edited after it was applied: put it back, and write a new one.`)
    }
    applied.add(name)
  }
  return migrations.filter(({ name }) => !applied.has(name))
}

/** Tries until the tables are free for a moment. @throws Error that names the migration */
async function applyInTurn(client: pg.Client, migration: Migration, triesMax: number): Promise<void> {
  const { name, sql } = migration
  for (let tries = 1; ; tries += 1) {
    try {
      return await apply(client, migration)
    } catch (error) {
      const isLocked = error instanceof pg.DatabaseError && error.code === lockNotAvailable
      if (!isLocked || tries >= triesMax) {
        const more = isLocked
          ? `; others used the table at each of ${tries} tries: find and end their long transactions ` +
            '(pg_stat_activity), then start again'
          : ''
        throw new Error(`Migration ${name} failed: ${describe(error, sql)}${more}`, { cause: error })
      }
    }
    await sleep(lockPauseMs * (0.5 + Math.random()))
  }
}

async function apply(client: pg.Client, { name, sql, checksum }: Migration): Promise<void> {
  try {
    await client.query('begin')
    await client.query(`set local lock_timeout = ${lockTimeoutMs}`)
    const begun = await currentTransaction(client)
    await client.query(sql)
    if ((await currentTransaction(client)) !== begun) throw new Error('it ends its own transaction')
    await client.query(
      `insert into _prisma_migrations
         (id, checksum, migration_name, started_at, finished_at, applied_steps_count)
       values ($1, $2, $3, now(), clock_timestamp(), 1)`,
      [randomUUID(), checksum, name],
    )
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}

async function currentTransaction(client: pg.Client): Promise<string | undefined> {
  const { rows } = await client.query<{ id: string }>('select pg_current_xact_id()::text as id')
  return rows[0]?.id
}

/**
 * Roles belong to the whole server, so nodes of other databases may be doing this at the same moment, and an
 * administrator may have made them.
 */
export async function ensureRoles(client: pg.Client): Promise<void> {
  const refusals: unknown[] = []
  for (const role of [serviceRole, merchantRole]) {
    if (await mayTakeRole(client, role)) continue
    for (const statement of [`create role ${role} nologin`, `grant ${role} to current_user`]) {
      await client.query(statement).catch((error: unknown) => refusals.push(error))
    }
  }
  const lacking: string[] = []
  for (const role of [serviceRole, merchantRole]) if (!(await mayTakeRole(client, role))) lacking.push(role)
  if (lacking.length > 0) {
    const user = client.escapeIdentifier(client.user ?? '')
    const advice = lacking.map((role) => `CREATE ROLE ${role} NOLOGIN; GRANT ${role} TO ${user};`)
    throw new Error(
      `The database account may not act as ${lacking.join(' and ')}: let an administrator run ` +
        advice.join(' '),
      { cause: refusals.at(-1) },
    )
  }
  await assertWalled(client)
}

/**
 * Makes each session of this account in this database begin as the role that sees no merchant until it is
 * bound to one. Other roles, and the account's own rights, must be asked for. So a session whose startup
 * options were lost on the way sees no merchant instead of all of them.
 */
async function beginWalled(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ database: string; done: boolean }>(
    `select current_database() as database, exists (
       select from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase
       where d.datname = current_database() and s.setrole = session_user::regrole and $1 = any (s.setconfig)
     ) as done`,
    [`role=${merchantRole}`],
  )
  const database = client.escapeIdentifier(rows[0]?.database ?? '')
  if (!rows[0]?.done)
    await client.query(`alter role session_user in database ${database} set role = '${merchantRole}'`)
}

/** @throws Error where row-level security would not hold the role: it would see every merchant */
export async function assertWalled(client: pg.ClientBase, role: string = merchantRole): Promise<void> {
  const { rowCount } = await client.query(
    `select from pg_roles
     where rolname = $1 and (rolsuper or rolbypassrls or pg_has_role(oid, $2, 'USAGE'))`,
    [role, serviceRole],
  )
  if (rowCount) {
    throw new Error(
      `The role ${role} must hold no rights of others: let an administrator run ` +
        `ALTER ROLE ${role} NOSUPERUSER NOBYPASSRLS; REVOKE ${serviceRole} FROM ${role};`,
    )
  }
}

async function mayTakeRole(client: pg.Client, role: string): Promise<boolean> {
  // Since PostgreSQL 16 a member may lack the right to act as the role.
  const { rows } = await client.query<{ may: boolean }>(
    `select pg_has_role(current_user, oid, case when current_setting('server_version_num')::int >= 160000
       then 'SET' else 'MEMBER' end) as may
     from pg_roles where rolname = $1`,
    [role],
  )
  return rows[0]?.may ?? false
}

/** The message, with the line of the file that PostgreSQL points at. */
function describe(error: unknown, sql: string): string {
  if (!(error instanceof Error)) return String(error)
  const position = error instanceof pg.DatabaseError ? Number(error.position) : 0
  return position ? `${error.message} (line ${sql.slice(0, position).split('\n').length})` : error.message
}
