import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildSchema } from 'graphql'
import pg from 'pg'
import { startEmbedded } from '../src/database/embedded.ts'
import { migrate } from '../src/database/migrate.ts'
import { shortDeprecations } from '../test/kit/schema-changes.ts'
import { readSignatures } from './signatures.ts'

const folder = join(import.meta.dirname, '../test/database')
const today = new Date().toISOString().slice(0, 10)

/** What a role of the service may call, read or write, as one statement. */
interface Use {
  role: string
  statement: string
}

/**
 * Writes down all that the service of this checkout may ask of its database: each function with the types it
 * takes and the columns it gives, each table with the columns that may be read and written. It is run at each
 * release; `test/database/release.test.ts` then checks that the next schema still answers all of it, so that
 * nodes of the old release go on beside it. It also writes down the signatures of all functions: the next
 * release can replace a function only by one with the same signature.
 */
async function writeStatements(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'release-statements-'))
  const server = await startEmbedded({ dataDir, durable: false })
  try {
    const connection = server.connection()
    await migrate(connection)
    const client = new pg.Client(connection)
    await client.connect()
    await client.query('set role none')
    const uses = [...(await readCalls(client)), ...(await readColumns(client))]
    const functions = await readSignatures(client)
    await client.end()
    const release = execFileSync('git', ['rev-parse', '--short', 'HEAD']).toString().trim()
    const write = (name: string, part: string, all: readonly unknown[]) => {
      const lines = all.map((one) => `    ${JSON.stringify(one)}`)
      const about = `  "release": "${release}",\n  "day": "${today}",\n`
      const text = `{\n${about}  "${part}": [\n${lines.join(',\n')}\n  ]\n}\n`
      writeFileSync(join(folder, name), text)
    }
    write('release.json', 'uses', uses)
    write('release-functions.json', 'functions', functions)
  } finally {
    await server.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/** Counts months of deprecations from today; `test/graphql/release.test.ts` counts from the last release. */
function refuseShortDeprecations(): void {
  const read = (path: string) => buildSchema(readFileSync(join(import.meta.dirname, path), 'utf8'))
  const short = shortDeprecations(read('../test/graphql/release.graphql'), read('../schema.graphql'), today)
  if (short.length > 0)
    throw new Error(`These are removed sooner than twelve months from today: ${short.join(', ')}.`)
}

const rolesSql = `(VALUES ('payments_service'), ('payments_merchant')) AS r (role)`

async function readCalls(client: pg.Client): Promise<Use[]> {
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

async function readColumns(client: pg.Client): Promise<Use[]> {
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

refuseShortDeprecations()
await writeStatements()
// `test/graphql/release.test.ts` compares the next schema with this one.
copyFileSync(
  join(import.meta.dirname, '../schema.graphql'),
  join(import.meta.dirname, '../test/graphql/release.graphql'),
)
