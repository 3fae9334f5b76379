import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

/**
 * The role that owns every table and function of the service, and that runs the migrations. Row-level
 * security is forced on it, and a policy lets it see every row. The login account owns none of them and
 * inherits no role: unless it is a superuser, it sees rows of merchants only after it switched to a role.
 */
export const ownerRole = 'payments_owner'

/**
 * The longest wait of a migration for a table that is in use. It is short, because every later statement on
 * that table waits behind the migration, also on other nodes. The migration is then rolled back, and tried
 * again after a pause.
 */
const lockTimeoutMs = 300
const lockPauseMs = 500
/** PostgreSQL's error code for a lock that was not granted in time. */
const lockNotAvailable = '55P03'

/**
 * Runs `work` in its own transaction, and again while tables that it needs are in use.
 * @throws the error of `work`; or after `triesMax` tries, an error that says how to free the table; nothing
 * is kept
 */
export async function inShortTries(
  client: pg.Client,
  triesMax: number,
  work: () => Promise<unknown>,
): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await client.query(`begin; set local lock_timeout = ${lockTimeoutMs}`)
      await work()
      await client.query('commit')
      return
    } catch (error) {
      await client.query('rollback').catch(() => {})
      if (!(error instanceof pg.DatabaseError && error.code === lockNotAvailable)) throw error
      if (tries >= triesMax) {
        throw new Error(
          `${error.message}; others used the table at each of ${triesMax} tries: find and end their long ` +
            'transactions (pg_stat_activity), then start again',
          { cause: error },
        )
      }
    }
    await sleep(lockPauseMs * (0.5 + Math.random()))
  }
}

/**
 * Gives all objects of the account in the service's schemas to `ownerRole`, in one transaction. The account
 * owns them after a person ran `pg_restore --no-owner` without `--role`.
 * @param client a session with the account's own rights
 * @param options.users roles that use the tables
 * @throws Error with the statements for the owner of the database, where the account may not grant the rights
 */
export async function giveToOwner(
  client: pg.Client,
  { users, triesMax }: { users: readonly string[]; triesMax: number },
): Promise<void> {
  await letOwnerCreate(client, users)
  const { rows } = await client.query<{ statement: string }>(givingSql, [ownerRole])
  if (rows.length === 0) return
  const statements = rows.map(({ statement }) => statement).join('; ')
  await inShortTries(client, triesMax, () => client.query(statements)).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error)
    throw new Error(`Giving the tables to the role ${ownerRole} failed: ${why}`, { cause: error })
  })
}

/**
 * Makes one statement for each object. The new owner needs rights in the schema before it gets an object, and
 * the schema comes last, because the account then loses its rights there. An object of an extension stays
 * with its owner, and the sequence of a column follows its table.
 */
const givingSql = `
  select format(case kind when 'grant' then 'grant all on schema %2$s to %3$I'
    else 'alter %s %s owner to %I' end, kind, name, $1::text) as statement
  from (
    select 'table' as kind, c.oid::regclass::text as name, c.oid, c.relowner as owner,
      c.relnamespace as our_schema
    from pg_class c
    where c.relkind in ('r', 'p', 'v', 'm', 'S') and not exists (select from pg_depend d
      where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i')
        and c.relkind = 'S')
    union all select 'routine', oid::regprocedure::text, oid, proowner, pronamespace from pg_proc
    union all select 'type', oid::regtype::text, oid, typowner, typnamespace from pg_type t
    where t.typtype in ('e', 'd', 'r')
      or t.typtype = 'c' and (select c.relkind from pg_class c where c.oid = t.typrelid) = 'c'
    union all select unnest(array['grant', 'schema']), quote_ident(nspname), oid, nspowner, oid
    from pg_namespace where nspname <> 'public') thing
  where our_schema in (select oid from pg_namespace where nspname in ('public', 'graphile_worker'))
    and owner <> to_regrole($1) and pg_has_role(owner, 'USAGE')
    and owner in (select current_user::regrole union
      select relowner from pg_class where oid = to_regclass('public._prisma_migrations'))
    and not exists (select from pg_depend d where d.objid = thing.oid and d.deptype = 'e')
  order by array_position(array['grant', 'table', 'routine', 'type', 'schema'], kind)`

/**
 * Lets `ownerRole` create the service's schemas and tables in this database, and `users` use the schema
 * public.
 * @throws Error with the statements for the owner of the database, where the account may not grant the rights
 */
export async function letOwnerCreate(client: pg.Client, users: readonly string[]): Promise<void> {
  const lacking = async () => {
    const { rows } = await client.query<{ grant: string }>(
      `select format('GRANT CREATE ON DATABASE %I TO %I;', current_database(), $1::text) as grant
       where not has_database_privilege($1, current_database(), 'CREATE')
       union all select format('GRANT CREATE ON SCHEMA public TO %I;', $1)
       where not has_schema_privilege($1, 'public', 'CREATE')
       union all select format('GRANT USAGE ON SCHEMA public TO %I;', role) from unnest($2::text[]) as role
       where not has_schema_privilege(role, 'public', 'USAGE')`,
      [ownerRole, [...users, ownerRole]],
    )
    return rows.map(({ grant }) => grant)
  }
  for (const grant of await lacking()) await client.query(grant).catch(() => {})
  // A NOINHERIT account (PostgreSQL 15 and older) owns the schema public only through `pg_database_owner`.
  for (const grant of await lacking())
    await client
      .query(`begin; set local role pg_database_owner; ${grant}; commit`)
      .catch(() => client.query('rollback'))
  const missing = await lacking()
  if (missing.length === 0) return
  throw new Error(
    `The database account may not let ${ownerRole} create tables: let the owner of the database run ` +
      missing.join(' '),
  )
}
