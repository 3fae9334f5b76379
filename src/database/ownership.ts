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
/** A statement of a request ends within 5 s, a slice of a proof later. */
const othersEndMs = 15_000
const othersPauseMs = 20
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
 * Gives what the account owns in the service's schemas to `ownerRole`: what a release before this role made,
 * and what `pg_restore --no-owner` made. Nodes at work go on meanwhile: each statement is a transaction of
 * its own, needs one table at most and leaves a database that works, because the role may use every table
 * before functions act as it, and the account loses its rights only once the calls that act as it have ended.
 * The next start continues where one was broken off.
 * @param client a session with the account's own rights
 * @param options.users roles that use the tables
 * @throws Error that says what the owner of the database runs, where the account may not let the role create
 */
export async function giveToOwner(
  client: pg.Client,
  { users, triesMax }: { users: readonly string[]; triesMax: number },
): Promise<void> {
  await letOwnerCreate(client, users)
  const { rows } = await client.query<{ turn: number; what: string; statements: string }>(givingSql, [
    ownerRole,
  ])
  let hasWaited = false
  for (const { turn, what, statements } of rows) {
    if (turn >= tablesTurn && !hasWaited) {
      await untilOthersEnded(client)
      hasWaited = true
    }
    await inShortTries(client, triesMax, () => client.query(statements)).catch((error: unknown) => {
      const why = error instanceof Error ? error.message : String(error)
      throw new Error(`Giving ${what} to the role ${ownerRole} failed: ${why}`, { cause: error })
    })
  }
}

/**
 * Waits for the transactions of others that are under way: a call that began before the functions changed
 * goes on as it began, as the account where it was that, and may need a function or table that it has not
 * reached. Gives up after a while: a transaction that stays open calls nothing, or its last call fails and it
 * is tried again.
 */
async function untilOthersEnded(client: pg.Client): Promise<void> {
  const running = `select l.virtualtransaction as id from pg_locks l join pg_stat_activity a using (pid)
    where l.locktype = 'virtualxid' and a.datname = current_database() and l.pid <> pg_backend_pid()
      and a.usesysid is not null`
  const { rows: begun } = await client.query<{ id: string }>(running)
  const ids = begun.map(({ id }) => id)
  for (const deadline = performance.now() + othersEndMs; performance.now() < deadline; ) {
    const { rowCount } = await client.query(`select from (${running}) r where r.id = any ($1)`, [ids])
    if (!rowCount) return
    await sleep(othersPauseMs)
  }
}

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

/** From this turn on the account has no rights any more, which calls that began before still need. */
const tablesTurn = 4

/**
 * One row for each transaction, in their order. What an extension made stays with its owner, and a sequence
 * of a column follows its table. The job engine's tables have row-level security too, which is not forced.
 */
const givingSql = `
  with giver as (
    select o.owner from (
      select relowner as owner from pg_class where oid = to_regclass('public._prisma_migrations')
      union select oid from pg_roles where rolname = current_user) o
    where o.owner <> to_regrole($1) and pg_has_role(o.owner, 'USAGE')
  ), place as (
    select * from pg_namespace where nspname in ('public', 'graphile_worker')
  ), made as (
    select objid from pg_depend where deptype = 'e'
  ), relation as (
    select c.oid, c.oid::regclass as name, c.relkind as kind, c.relrowsecurity as is_walled,
      p.nspname = 'public' as is_ours,
      exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
        and d.deptype in ('a', 'i') and c.relkind = 'S') as follows
    from pg_class c join place p on p.oid = c.relnamespace
    where c.relkind in ('r', 'p', 'v', 'm', 'S') and c.relowner in (select owner from giver)
      and c.oid not in (select objid from made)
  ), routine as (
    select f.oid::regprocedure as name, f.proowner::regrole as owner
    from pg_proc f join place p on p.oid = f.pronamespace
    where f.proowner in (select owner from giver) and f.oid not in (select objid from made)
  ), step (turn, what, statements) as (
    select 0, 'the schema ' || nspname, format('grant all on schema %I to %I', nspname, $1) from place
    where nspname <> 'public' and nspowner in (select owner from giver)
    union all
    select 1, 'the table ' || name, format('grant all on %s to %I', name, $1) from relation
    union all
    select 2, 'the table ' || name, format('create policy every_row on %s to %I using (true)', name, $1)
    from relation r
    where is_walled
      and not exists (select from pg_policy p where p.polrelid = r.oid and p.polname = 'every_row')
    union all
    select 3, 'the functions', concat_ws('; ',
      string_agg(format('alter routine %s owner to %I', name, $1), '; '), format('set local role %I', $1),
      string_agg(format('grant execute on routine %s to %s', name, owner), '; '))
    from routine having count(*) > 0
    union all
    select ${tablesTurn}, 'the functions', concat_ws('; ', format('set local role %I', $1),
      string_agg(format('revoke execute on routine %s from %s', name, owner), '; '))
    from (select * from routine union select f.oid::regprocedure, a.grantee::regrole
      from pg_proc f join place p on p.oid = f.pronamespace cross join aclexplode(f.proacl) a
      where f.proowner = to_regrole($1)
        and a.grantee = (select oid from pg_roles where rolname = current_user)) r
    having count(*) > 0
    union all
    select ${tablesTurn}, 'the table ' || name, concat_ws('; ',
      case when is_walled and is_ours then format('alter table %s force row level security', name)
        when is_walled then format('drop policy every_row on %s', name) end,
      format('alter %s %s owner to %I', case kind when 'v' then 'view' when 'm' then 'materialized view'
        when 'S' then 'sequence' else 'table' end, name, $1))
    from relation where not follows
    union all
    select 5, 'the type ' || t.oid::regtype, format('alter type %s owner to %I', t.oid::regtype, $1)
    from pg_type t join place p on p.oid = t.typnamespace
    where t.typowner in (select owner from giver) and t.oid not in (select objid from made)
      and (t.typtype in ('e', 'd', 'r')
        or t.typtype = 'c' and exists (select from pg_class c where c.oid = t.typrelid and c.relkind = 'c'))
    union all
    select 6, 'the schema ' || nspname, format('alter schema %I owner to %I', nspname, $1) from place
    where nspname <> 'public' and nspowner in (select owner from giver)
  )
  select turn, what, statements from step order by turn`
