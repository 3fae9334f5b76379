import type pg from 'pg'

/** A function or table that a role of the service may use, as one statement. */
export interface Use {
  role: string
  statement: string
}

/**
 * Reads all that the service may ask of its database: each function with the types it takes and the columns
 * it gives, each table with the columns that may be read and written.
 */
export async function readUses(client: pg.ClientBase): Promise<Use[]> {
  return [...(await readCalls(client)), ...(await readColumns(client))]
}

/**
 * Plans each statement under its role, which checks names, types and rights, and runs nothing.
 * @returns the function or table of each statement that is refused, and why
 */
export async function refusedOf(client: pg.ClientBase, uses: readonly Use[]): Promise<string[]> {
  const refused: string[] = []
  for (const { role, statement } of uses) {
    await client.query(`SET ROLE ${role}`)
    await client
      .query(`EXPLAIN (GENERIC_PLAN) ${statement}`)
      .catch((error: Error) => refused.push(`${subjectOf(statement)}: ${error.message}`))
  }
  await client.query('RESET ROLE')
  return refused
}

function subjectOf(statement: string): string {
  return /^SELECT (\w+)\(|(?:FROM|INTO|UPDATE) "?(\w+)/.exec(statement)?.slice(1).find(Boolean) ?? statement
}

/** Reads the signature of each function of the service, and the fields of each type of its arguments. */
export async function readSignatures(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ signature: string }>(
    `SELECT format('%s(%s) %s', p.proname, pg_get_function_identity_arguments(p.oid),
       pg_get_function_result(p.oid)) AS signature
     FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
       AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
     UNION ALL
     SELECT format('%s(%s)', c.relname,
       string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum))
     FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'c' GROUP BY c.relname
     ORDER BY 1`,
  )
  return rows.map(({ signature }) => signature)
}

/**
 * Returns the functions and types that have a name from before and another signature. PostgreSQL does not
 * replace a function by one with other names or another result, and a node of the previous release sends the
 * fields of a type that it knows: such a function or type needs a new name.
 */
export function changedSignatures(before: readonly string[], after: readonly string[]): string[] {
  const nameOf = (signature: string) => signature.slice(0, signature.indexOf('('))
  const names = new Set(before.map(nameOf))
  return after.filter((signature) => names.has(nameOf(signature)) && !before.includes(signature))
}

const rolesSql = `(VALUES ('payments_service'), ('payments_merchant')) AS r (role)`

async function readCalls(client: pg.ClientBase): Promise<Use[]> {
  const { rows } = await client.query<{ role: string; name: string; takes: string[]; gives: string[] }>(
    `SELECT r.role, p.proname AS name,
       ARRAY(SELECT format_type(type, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY AS a (type, n)
         ORDER BY n) AS takes,
       ARRAY(SELECT p.proargnames[i] FROM generate_subscripts(p.proargmodes, 1) AS i
         WHERE p.proargmodes[i] IN ('t', 'o') ORDER BY i) AS gives
     FROM pg_proc p, ${rolesSql}
     WHERE p.pronamespace = 'public'::regnamespace AND p.prorettype <> 'trigger'::regtype
       AND has_function_privilege(r.role, p.oid, 'EXECUTE')
     ORDER BY 1 DESC, 2, 3`,
  )
  return rows.map(({ role, name, takes, gives }) => {
    const call = `${name}(${takes.map((type, place) => `$${place + 1}::${type}`).join(', ')})`
    const columns = gives.map((column) => client.escapeIdentifier(column)).join(', ')
    return { role, statement: gives.length > 0 ? `SELECT ${columns} FROM ${call}` : `SELECT ${call}` }
  })
}

async function readColumns(client: pg.ClientBase): Promise<Use[]> {
  const may = (right: string) =>
    `array_agg(quote_ident(a.attname) ORDER BY a.attnum)
       FILTER (WHERE has_column_privilege(r.role, c.oid, a.attnum, '${right}') AND a.attidentity <> 'a')`
  const { rows } = await client.query<{
    role: string
    name: string
    reads: string[] | null
    inserts: string[] | null
    updates: string[] | null
    deletes: boolean
  }>(
    `SELECT r.role, quote_ident(c.relname) AS name,
       array_agg(quote_ident(a.attname) ORDER BY a.attnum)
         FILTER (WHERE has_column_privilege(r.role, c.oid, a.attnum, 'SELECT')) AS reads,
       ${may('INSERT')} AS inserts, ${may('UPDATE')} AS updates,
       has_table_privilege(r.role, c.oid, 'DELETE') AS deletes
     FROM ${rolesSql}, pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v', 'p')
       AND a.attnum > 0 AND NOT a.attisdropped
     GROUP BY r.role, c.oid, c.relname ORDER BY 1 DESC, 2`,
  )
  return rows.flatMap(({ role, name, reads, inserts, updates, deletes }) => {
    const statements = [
      ...(reads ? [`SELECT ${reads.join(', ')} FROM ${name}`] : []),
      ...(inserts
        ? [`INSERT INTO ${name} (${inserts.join(', ')}) VALUES (${inserts.map(() => 'NULL').join(', ')})`]
        : []),
      ...(updates ? [`UPDATE ${name} SET ${updates.map((column) => `${column} = NULL`).join(', ')}`] : []),
      ...(deletes ? [`DELETE FROM ${name}`] : []),
    ]
    return statements.map((statement) => ({ role, statement }))
  })
}
