import type pg from 'pg'
import { merchantRole } from './merchant-pool.ts'
import { serviceRole } from './migrate.ts'
import { ownerRole } from './ownership.ts'

type CatalogueReader = Pick<pg.Pool, 'query'>

/** The policies of each table with merchants' rows, as the migrations make them. */
const policies = [
  { name: 'every_row', role: ownerRole, condition: 'true' },
  { name: 'every_merchant', role: serviceRole, condition: 'true' },
  {
    name: 'tenant_isolation',
    role: merchantRole,
    condition: "merchant_id = (SELECT nullif(current_setting('app.merchant', true), '')::int)",
  },
]

/** Finds the tables with merchants' rows, in the column `merchant_id` or, in `merchant` itself, `id`. */
const merchantTables = `
  SELECT c.oid, c.relname, c.relrowsecurity AND c.relforcerowsecurity AS is_forced FROM pg_class c
  WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
    AND (c.relname = 'merchant' OR EXISTS (SELECT FROM pg_attribute a
      WHERE a.attrelid = c.oid AND a.attname = 'merchant_id' AND NOT a.attisdropped))`

/**
 * Verifies at the start that the rows of each merchant are separated as the migrations do it. Without that
 * everything still works, so no other check would find the error.
 * @throws Error that names the tables and the policies, and the statements to run
 */
export async function verifyRowSecurity(pool: CatalogueReader): Promise<void> {
  await verifyForced(pool)
  await verifyPolicies(pool)
}

/** Every table has FORCE ROW LEVEL SECURITY, so that its owner is restricted too. */
async function verifyForced(pool: CatalogueReader): Promise<void> {
  const { rows } = await pool.query<{ name: string }>(
    `SELECT format('%I', relname) AS name FROM (${merchantTables}) t WHERE NOT is_forced ORDER BY relname`,
  )
  if (rows.length === 0) return
  const force = rows.map(
    ({ name }) => `ALTER TABLE ${name} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;`,
  )
  throw new Error(
    `Row-level security is not forced on ${rows.map(({ name }) => name).join(', ')}: the role that owns it ` +
      `would see every merchant there without a policy. ${remedy(force)}`,
  )
}

/** Every table has these policies and no other: one more policy may show a merchant the rows of others. */
async function verifyPolicies(pool: CatalogueReader): Promise<void> {
  const { rows } = await pool.query<{ policy: string; state: keyof typeof states; repair: string }>(
    differingPolicies,
    [policies.map(({ name }) => name), policies.map(({ role }) => role), policies.map((p) => p.condition)],
  )
  if (rows.length === 0) return
  const found = rows.map(({ policy, state }) => `${policy} ${states[state]}`)
  throw new Error(
    `Row-level security has other policies than the service made: ${found.join(', ')}. A merchant may see ` +
      `the rows of others, or lack some. ${remedy(rows.map(({ repair }) => repair))}`,
  )
}

const states = { foreign: 'is not of the service', changed: 'was changed', missing: 'is missing' }

/**
 * Compares the policies with those of the catalogue. PostgreSQL prints a condition with casts, parentheses
 * and names of columns of its own, which differ between versions and are left out on both sides.
 */
const differingPolicies = `
  WITH ours AS (
    SELECT t.oid, t.relname, o.name, o.role,
      CASE t.relname WHEN 'merchant' THEN replace(o.condition, 'merchant_id', 'id') ELSE o.condition END
        AS condition
    FROM (${merchantTables}) t
    CROSS JOIN unnest($1::text[], $2::text[], $3::text[]) AS o (name, role, condition)
  ), found AS (
    SELECT t.oid, t.relname, p.polname::text AS name, polcmd = '*' AND polpermissive
      AND polwithcheck IS NULL AS is_plain, pg_get_expr(polqual, t.oid) AS condition,
      ARRAY(SELECT coalesce(r.rolname, 'public')::text FROM unnest(polroles) AS role (oid)
        LEFT JOIN pg_roles r USING (oid)) AS roles
    FROM (${merchantTables}) t JOIN pg_policy p ON p.polrelid = t.oid
  )
  SELECT format('%I on %I', name, relname) AS policy,
    CASE WHEN o.oid IS NULL THEN 'foreign' WHEN f.oid IS NULL THEN 'missing' ELSE 'changed' END AS state,
    concat_ws(' ', CASE WHEN f.oid IS NOT NULL THEN format('DROP POLICY %I ON %I;', name, relname) END,
      CASE WHEN o.oid IS NOT NULL THEN format('CREATE POLICY %I ON %I TO %I USING (%s);',
        name, relname, o.role, o.condition) END) AS repair
  FROM ours o FULL JOIN found f USING (oid, relname, name)
  WHERE (f.is_plain AND f.roles = ARRAY[o.role]
    AND ${bare('f.condition')} = ${bare('o.condition')}) IS NOT TRUE
  ORDER BY relname, name`

function bare(condition: string): string {
  return String.raw`lower(regexp_replace(${condition}, '\sAS "?\w+"?|::\w+|[()\s]', '', 'g'))`
}

function remedy(statements: readonly string[]): string {
  return `Run as the account of DATABASE_URL: SET ROLE ${ownerRole}; ${statements.join(' ')}`
}
