import { createHash, randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { canBeFolded, foldMigrations } from './before-first-release.ts'
import { asRole } from './client.ts'
import { expirePaymentFigures, fillPaymentFigures } from './figures-fill.ts'
import { applyFunctions, areFunctionsDue, readFunctions } from './functions.ts'
import { migrateJobs } from './jobs-schema.ts'
import { merchantRole } from './merchant-pool.ts'
import { giveToOwner, inShortTries, ownerRole } from './ownership.ts'
import { locks } from './locks.ts'

/**
 * The role of the service. It owns nothing, and has only the rights that the migrations grant. It sees every
 * merchant's rows; a merchant's own requests are read under `merchantRole`.
 */
export const serviceRole = 'payments_service'

/** Prisma's own table, so that its command line finds a history that it understands. */
const historyTable = `create table if not exists _prisma_migrations (
  id varchar(36) primary key not null, checksum varchar(64) not null, finished_at timestamptz,
  migration_name varchar(255) not null, logs text, rolled_back_at timestamptz,
  started_at timestamptz not null default now(), applied_steps_count integer not null default 0)`

/** How often a migration tries to lock its tables, at most (see `inShortTries`). */
const lockTriesMax = 30

export interface Migration {
  name: string
  sql: string
  /** SHA-256 of the file, in hexadecimal. */
  checksum: string
}

/**
 * Brings a database up to date: creates the missing roles of the service, then applies each missing
 * migration, in the order of their names and each in its own transaction, then the SQL functions if they
 * changed, and last fills the figures of payments where none were kept. Any number of nodes may call it at
 * once.
 *
 * Migrations run as `ownerRole`. This role owns all that they create, and sees and changes the rows of every
 * merchant. Under the account's own rights, a migration would change no row, and no error would say so.
 * @param options.folder holds `NNNN_name/migration.sql`; by default the service's own, after the job engine's
 * @param options.functions holds the `*.sql` files; by default the service's own, or none where `folder` is
 * given
 * @param options.lockTries how often a migration tries to lock its tables, at most
 * @returns the names of the migrations that were applied now
 * @throws Error when a migration was edited after it was applied, is half done, or fails; a failed migration
 * is rolled back
 */
export async function migrate(
  connection: pg.ClientConfig | string,
  options: {
    folder?: string
    functions?: string
    lockTries?: number
    log?: (event: string) => void
  } = {},
): Promise<{ applied: string[] }> {
  const migrations = readMigrations(options.folder)
  const client = new pg.Client(connection)
  client.on('error', () => {})
  await client.connect()
  try {
    // A statement sets the role, because the startup options may be lost; the service reports that later.
    await client.query('set role none')
    await client.query('select pg_advisory_lock($1)', [locks.migrations])
    await ensureRoles(client)
    if (!options.folder) await refuseEarlier(client, migrations)
    const lockTries = options.lockTries ?? lockTriesMax
    await giveToOwner(client, { users: [serviceRole, merchantRole], triesMax: lockTries })
    await client.query(`set role ${ownerRole}`)
    await client.query(historyTable)
    const [baseline] = migrations
    if (!options.folder && baseline && (await foldMigrations(client, baseline, lockTries)))
      options.log?.('The migrations from before the first release are one now')
    const pending = await findPending(client, migrations, options.log)
    // The service's migrations grant rights on the job engine's tables, so these come first.
    if (!options.folder && (await migrateJobs(client, asRole(connection, ownerRole))))
      options.log?.('Job engine migrated')
    for (const migration of pending) {
      await applyInTurn(client, migration, lockTries)
      options.log?.(`Migration ${migration.name} applied`)
    }
    if (!options.folder || options.functions)
      await updateFunctions(client, { folder: options.functions, lockTries, log: options.log })
    if (!options.folder && (await fillPaymentFigures(client))) options.log?.('Figures of payments filled')
    await client.query('set role none')
    if (!options.folder) await startIsolated(client)
    return { applied: pending.map(({ name }) => name) }
  } finally {
    // Ends the session, and so releases the lock.
    await client.end()
  }
}

async function updateFunctions(
  client: pg.Client,
  options: { folder: string | undefined; lockTries: number; log: ((event: string) => void) | undefined },
): Promise<void> {
  const functions = readFunctions(options.folder)
  if (!(await areFunctionsDue(client, functions))) return
  await inShortTries(client, options.lockTries, async () => {
    await expirePaymentFigures(client)
    await applyFunctions(client, functions)
  }).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error)
    throw new Error(`The functions failed: ${why}`, { cause: error })
  })
  options.log?.(`${functions.files.length} functions applied`)
}

/**
 * @throws Error where a version from before the first release made the database, or a foreign role owns its
 * tables; nothing was changed
 */
async function refuseEarlier(client: pg.Client, migrations: readonly Migration[]): Promise<void> {
  const { rows } = await client.query<{ owner: string; isOurs: boolean }>(
    `select pg_get_userbyid(relowner) as owner, pg_has_role(relowner, 'USAGE') as "isOurs"
     from pg_class where oid = to_regclass('public._prisma_migrations')`,
  )
  if (!rows[0]) return
  const { owner, isOurs } = rows[0]
  if (owner !== ownerRole && !isOurs)
    throw new Error(
      `The tables belong to the role ${owner}, and must belong to ${ownerRole}: restore the backup into an ` +
        'empty database by "npm run admin -- restore --from ...", or by pg_restore as the account of ' +
        `DATABASE_URL with --no-owner --role=${ownerRole}.`,
    )
  if (!isOurs) await client.query(`set role ${ownerRole}`)
  const { rowCount } = await client.query(
    `select from _prisma_migrations
     having count(*) > 0 and bool_and(migration_name <> $1 or checksum <> $2)`,
    [migrations[0]?.name, migrations[0]?.checksum],
  )
  const isRefused = rowCount === 1 && !(await canBeFolded(client))
  await client.query('set role none')
  if (!isRefused) return
  throw new Error(
    'This database was made by a version from before the first release, which this one cannot take over: ' +
      'start with an empty database, or go on with that version.',
  )
}

/** Reads the migrations of a folder, in the order in which they apply. */
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

/**
 * Applies a migration, and tries again while its tables are in use. @throws Error that names the migration
 */
async function applyInTurn(client: pg.Client, migration: Migration, triesMax: number): Promise<void> {
  const { name, sql } = migration
  try {
    await inShortTries(client, triesMax, () => apply(client, migration))
  } catch (error) {
    throw new Error(`Migration ${name} failed: ${describe(error, sql)}`, { cause: error })
  }
}

async function apply(client: pg.Client, { name, sql, checksum }: Migration): Promise<void> {
  const begun = await currentTransaction(client)
  await client.query(sql)
  if ((await currentTransaction(client)) !== begun) throw new Error('it ends its own transaction')
  await client.query(
    `insert into _prisma_migrations
       (id, checksum, migration_name, started_at, finished_at, applied_steps_count)
     values ($1, $2, $3, now(), clock_timestamp(), 1)`,
    [randomUUID(), checksum, name],
  )
}

async function currentTransaction(client: pg.Client): Promise<string | undefined> {
  const { rows } = await client.query<{ id: string }>('select pg_current_xact_id()::text as id')
  return rows[0]?.id
}

/**
 * Makes sure that the account may act as each role of the service, and has the rights of a role only after it
 * switched to the role. Roles belong to the whole server, so nodes of other databases may do this at the same
 * moment, and an administrator may have made the roles.
 * @throws Error that names the statements for an administrator
 */
export async function ensureRoles(client: pg.Client): Promise<void> {
  const refusals: unknown[] = []
  for (const { statements } of await readLacking(client)) {
    // Other programs may need the inherited rights of this database user: only an administrator ends them.
    for (const statement of statements.filter((each) => !each.startsWith('ALTER ROLE')))
      await client.query(statement).catch((error: unknown) => refusals.push(error))
  }
  const lacking = await readLacking(client)
  if (lacking.length > 0) {
    const named = (problem: string, isSo: (role: Lacking) => boolean) => {
      const names = lacking.filter(isSo).map(({ role }) => role)
      return names.length > 0 ? [`${problem} ${names.join(' and ')}`] : []
    }
    const problems = [
      ...named('may not act as', ({ may }) => !may),
      ...named('has, before it asks for them, the rights of', ({ may }) => may),
    ]
    const advice = new Set(lacking.flatMap(({ statements }) => statements))
    throw new Error(
      `The database account ${problems.join(', and ')}: let an administrator run ${[...advice].join(' ')}`,
      { cause: refusals.at(-1) },
    )
  }
  await assertTenantRls(client)
  await assertTenantRls(client, serviceRole, [ownerRole])
  await assertTenantRls(client, ownerRole, [])
}

/** A role that the account may not act as, or with rights that the account inherits. */
interface Lacking {
  role: string
  /** Whether the account may act as the role. */
  may: boolean
  /** The statements that correct the problem. */
  statements: string[]
}

async function readLacking(client: pg.Client): Promise<Lacking[]> {
  // Since PostgreSQL 16, a member may lack the right to act as the role, and each membership says whether the
  // member inherits its rights; before, the member's own attribute says so. A superuser has every right.
  const { rows } = await client.query<Lacking>(
    `with server as (select current_setting('server_version_num')::int >= 160000 as is_new), found as (
       select w.role, w.ordinal, r.oid is not null as exists, s.is_new, me.rolinherit,
         coalesce(pg_has_role(current_user, r.oid, case when s.is_new then 'SET' else 'MEMBER' end), false)
           as may,
         coalesce(pg_has_role(current_user, r.oid, 'USAGE') and not me.rolsuper, false) as inherits
       from unnest($1::text[]) with ordinality as w (role, ordinal)
       left join pg_roles r on r.rolname = w.role
       join pg_roles me on me.rolname = current_user cross join server s)
     select role, may, array_remove(array[
       case when not exists then format('CREATE ROLE %I NOLOGIN;', role) end,
       case when is_new then format('GRANT %I TO %I WITH INHERIT FALSE, SET TRUE;', role, current_user)
         when not may then format('GRANT %I TO %I;', role, current_user) end,
       case when not is_new and rolinherit
         then format('ALTER ROLE %I NOINHERIT;', current_user) end], null) as statements
     from found where not may or inherits order by ordinal`,
    [[serviceRole, merchantRole, ownerRole]],
  )
  return rows
}

/**
 * Makes each session of this account in this database begin as the role that sees no merchant until the
 * session is bound to one. Other roles, and the account's own rights, must be requested. So a session that
 * lost its startup options sees no merchant, instead of all.
 */
async function startIsolated(client: pg.Client): Promise<void> {
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

/**
 * Refuses a role that row-level security would not restrict: the role would see every merchant.
 * @param above other roles; the checked role must not have their rights
 * @throws Error that names the statements for an administrator
 */
export async function assertTenantRls(
  client: pg.ClientBase,
  role: string = merchantRole,
  above: readonly string[] = [serviceRole, ownerRole],
): Promise<void> {
  const { rowCount } = await client.query(
    `select from pg_roles r
     where rolname = $1 and (rolsuper or rolbypassrls or exists (
       select from pg_roles a where a.rolname = any ($2::text[]) and pg_has_role(r.oid, a.oid, 'MEMBER')))`,
    [role, above],
  )
  if (rowCount) {
    const revokes = above.map((other) => ` REVOKE ${other} FROM ${role};`).join('')
    throw new Error(
      `The role ${role} must hold no rights of others: let an administrator run ` +
        `ALTER ROLE ${role} NOSUPERUSER NOBYPASSRLS;${revokes}`,
    )
  }
}

/** Returns the message, with the line of the file that PostgreSQL names. */
function describe(error: unknown, sql: string): string {
  if (!(error instanceof Error)) return String(error)
  const position = error instanceof pg.DatabaseError ? Number(error.position) : 0
  return position ? `${error.message} (line ${sql.slice(0, position).split('\n').length})` : error.message
}
