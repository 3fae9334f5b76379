import { createHash } from 'node:crypto'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { startEmbedded } from '../../src/database/embedded.ts'
import { ensureGenerated } from '../../src/database/ensure-generated.ts'
import { readFunctions } from '../../src/database/functions.ts'
import { migrate, readMigrations } from '../../src/database/migrate.ts'
import { doneWith } from './database.ts'
import { ensureBuilt } from './dashboard-build.ts'
import { databaseUrl } from './database-url.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /**
     * The server for test databases, the template that they copy, and the number that marks those of this
     * run.
     */
    testServer: { url: string; template: string; run: number }
  }
}

const cacheDir = join(import.meta.dirname, '../../node_modules/.cache/merchant-payments')
/** The lock by which runs that share a server prepare it one after another. */
const setupLock = 827_105

/**
 * Runs once per run: starts a PostgreSQL for tests, which stays between runs, with a template database for
 * the migrations as they are. Databases of this run are dropped at its end; databases that earlier runs left
 * are dropped now, so that a person can look into those of a failed test until then.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  ensureGenerated()
  ensureBuilt()
  const given = process.env.TEST_DATABASE_URL
  // A second run at the same time joins the server of the first.
  const server = given ? null : await startEmbedded({ dataDir: join(cacheDir, 'pg-test'), durable: false })
  const url = server ? databaseUrl(server.connection('postgres')) : (given ?? '')
  const client = new pg.Client(url)
  await client.connect()
  await client.query('select pg_advisory_lock($1)', [setupLock])
  const template = await prepareTemplate(client, url)
  await client.query(`set application_name = ${template}`)
  await dropLeftovers(client)
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  await client.query('select pg_advisory_unlock($1)', [setupLock])
  project.provide('testServer', { url, template, run: rows[0]?.pid ?? 0 })
  return async () => {
    await dropDone(client)
    await client.end()
    await server?.stop()
  }
}

async function prepareTemplate(client: pg.Client, url: string): Promise<string> {
  const checksums = readMigrations().map(({ name, checksum }) => `${name} ${checksum}`)
  checksums.push(readFunctions().checksum)
  const template = `tpl_${createHash('sha256').update(checksums.join('\n')).digest('hex').slice(0, 16)}`
  const { rowCount } = await client.query('select from pg_database where datname = $1', [template])
  if (rowCount) return template
  const making = `making_${template}`
  await client.query(`drop database if exists ${making} with (force)`)
  await client.query(`create database ${making}`)
  await migrate(databaseUrl(url, making))
  await client.query(`alter database ${making} rename to ${template}`)
  return template
}

async function dropDone(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ datname: string }>(
    `select datname from pg_database
     where datconnlimit = $1 and datname like 'test\\_' || pg_backend_pid() || '\\_%'`,
    [doneWith],
  )
  for (const { datname } of rows) await client.query(`drop database "${datname}" with (force)`)
}

/**
 * Drops databases of earlier runs. A run under way keeps its own: its connection bears its number and its
 * template's name.
 */
async function dropLeftovers(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ datname: string }>(
    `select datname from pg_database
     where case
       when datname ~ '^test_[0-9]+_'
         then split_part(datname, '_', 2) not in (select pid::text from pg_stat_activity)
       when datname like 'tpl\\_%' then datname not in (select application_name from pg_stat_activity)
     end`,
  )
  for (const { datname } of rows) await client.query(`drop database if exists "${datname}" with (force)`)
}
