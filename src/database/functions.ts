import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type pg from 'pg'

interface FunctionFile {
  /** Below `src`. */
  path: string
  sql: string
}

/** The SQL functions of one version of the service, with their triggers and rights. */
export interface FunctionFiles {
  files: readonly FunctionFile[]
  /** SHA-256 over all of them, in hexadecimal. */
  checksum: string
}

/**
 * The tables that record the applied versions, newest last, and the functions that remain of older versions.
 */
const stateTables = `
  create table if not exists _functions (
    checksum text primary key, applied_at timestamptz not null default clock_timestamp());
  create table if not exists _retired_functions (signature text primary key)`

/** The roles that a function may be granted to: that of the service, and that of one merchant's requests. */
const callers = ['payments_service', 'payments_merchant']
const grantLine = /^-- Granted to (.+?)\.?$/m

/**
 * Reads each `*.sql` file under `src`: each holds one function, named like its file. A function that reads
 * the rows of several tables alike has one form for each table, all in one file, because they change
 * together.
 */
export function readFunctions(folder: string = join(import.meta.dirname, '..')): FunctionFiles {
  const hash = createHash('sha256')
  const files = globSync('**/*.sql', { cwd: folder })
    .toSorted()
    .map((path) => {
      const sql = readFileSync(join(folder, path), 'utf8')
      hash.update(`${path}\n${sql}\n`)
      return { path, sql }
    })
  return { files, checksum: hash.digest('hex') }
}

/**
 * Whether the functions of this version must be applied: other functions were applied last. Exception: if
 * this version's were applied earlier, and other processes are connected, the database keeps the newer
 * functions. This older process can use them, because a function whose signature changed stays for one
 * release.
 */
export async function areFunctionsDue(client: pg.Client, { checksum }: FunctionFiles): Promise<boolean> {
  await client.query(stateTables)
  const { rows } = await client.query<{ checksum: string; others: boolean }>(
    `select checksum, exists (
       select from pg_stat_activity
       where datname = current_database() and application_name like 'merchant-payments%'
         and pid <> pg_backend_pid()) as others
     from _functions order by applied_at`,
  )
  const last = rows.at(-1)
  if (last?.checksum === checksum) return false
  return !(last?.others && rows.some((row) => row.checksum === checksum))
}

/**
 * Defines every function and trigger anew, inside the caller's transaction. Only the roles that a file names
 * (`-- Granted to payments_service.`) may then call its function. A function that the files no longer define
 * is kept once, for processes of the previous release, and dropped the next time.
 * @throws Error that names the file
 */
export async function applyFunctions(client: pg.Client, { files, checksum }: FunctionFiles): Promise<void> {
  // A function may call a function of a later file.
  await client.query('set local check_function_bodies = off')
  for (const { path, sql } of files) {
    await client.query(sql).catch((error: unknown) => {
      // The caller gets the same error object: its code says whether a table was in use and a retry helps.
      if (error instanceof Error) error.message = `src/${path}: ${error.message}`
      throw error
    })
  }
  await grantFunctions(client, files)
  // A function that was not defined in this transaction belongs to an older version.
  const { rows } = await client.query<{ signature: string; isRetired: boolean }>(
    `select p.oid::regprocedure::text as signature, r.signature is not null as "isRetired"
     from pg_proc p left join _retired_functions r on r.signature = p.oid::regprocedure::text
     where p.pronamespace = 'public'::regnamespace and p.xmin <> pg_current_xact_id()::xid
       and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')`,
  )
  for (const { signature, isRetired } of rows) {
    if (isRetired) await client.query(`drop function ${signature}`)
  }
  await client.query('truncate _retired_functions')
  await client.query('insert into _retired_functions select unnest($1::text[])', [
    rows.filter(({ isRetired }) => !isRetired).map(({ signature }) => signature),
  ])
  await client.query(
    `insert into _functions (checksum) values ($1)
     on conflict (checksum) do update set applied_at = clock_timestamp()`,
    [checksum],
  )
}

/** Sets who may call the functions that this transaction defined; PostgreSQL lets everybody by default. */
async function grantFunctions(client: pg.Client, files: readonly FunctionFile[]): Promise<void> {
  const { rows } = await client.query<{ name: string; signature: string }>(
    `select proname as name, oid::regprocedure::text as signature from pg_proc
     where pronamespace = 'public'::regnamespace and xmin = pg_current_xact_id()::xid`,
  )
  if (rows.length === 0) return
  const listed = (found: typeof rows) => found.map(({ signature }) => signature).join(', ')
  await client.query(`revoke all on function ${listed(rows)} from public, ${callers.join(', ')}`)
  for (const caller of callers) {
    const granted = new Set(files.filter((file) => callersOf(file).includes(caller)).map(nameOf))
    const found = rows.filter(({ name }) => granted.has(name))
    if (found.length > 0) await client.query(`grant execute on function ${listed(found)} to ${caller}`)
  }
}

/** @throws Error where the file names another role */
function callersOf({ path, sql }: FunctionFile): string[] {
  const named = grantLine.exec(sql)?.[1]?.split(' and ') ?? []
  const unknown = named.find((role) => !callers.includes(role))
  if (unknown !== undefined) throw new Error(`src/${path}: no function is granted to ${unknown}.`)
  return named
}

function nameOf({ path }: FunctionFile): string {
  return basename(path, '.sql')
}
