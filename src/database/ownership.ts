import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

/**
 * The role that owns every table and function of the service, and that migrations run under. Row-level
 * security is forced on it: a policy shows it every row. The login account owns nothing and inherits nothing:
 * without asking for a role it sees no row of any merchant.
 */
export const ownerRole = 'payments_owner'

/**
 * A migration waits this long for a table that is in use, then undoes itself and tries again after a pause:
 * while it waits every other statement on that table waits behind it, also those of nodes at work.
 */
const lockTimeoutMs = 300
const lockPauseMs = 500
/** PostgreSQL's code for a lock that was not free in time. */
const lockNotAvailable = '55P03'

/**
 * Runs `work` in a transaction of its own, and again while tables that it needs are in use.
 * @throws what `work` threw, or after `triesMax` tries what to do about a table in use; nothing stays
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
 * Gives what the account owns in the service's schemas to `ownerRole`, in one transaction: the account owns
 * everything where a person ran `pg_restore --no-owner` without `--role`.
 * @param client a session with the account's own rights
 * @param options.users roles that use the tables
 * @throws Error that says what the owner of the database runs, where the account may not let the role create
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
 * One statement for each object: who gets an object needs rights in its schema first, and the schema goes
 * last, because the account loses its rights there. What an extension made stays with its owner, and a
 * sequence of a column follows its table.
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
 * Lets `ownerRole` create the service's schemas and tables in this database.
 * @throws Error that says what the owner of the database runs, where the account may not do that
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
  // An account that is NOINHERIT (PostgreSQL 15 and older) owns the schema public by this role alone.
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
