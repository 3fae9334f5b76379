import { randomInt } from 'node:crypto'
import pg from 'pg'
import { afterAll, inject } from 'vitest'
import { type Database, openDatabase, openPool } from '../../src/database/client.ts'
import { serviceRole } from '../../src/database/migrate.ts'
import { databaseUrl } from './database-url.ts'
import { eventually } from './eventually.ts'

/** A database of its own for one test file, with all migrations applied and nothing else in it. */
export interface TestDatabase {
  name: string
  /** For whoever opens it alone, a process of its own for instance (`DATABASE_URL`). */
  url: string
  connection: pg.ClientConfig
  /** As the service sees it: under its role. */
  database: Database
  /** With the rights of the owner, to look at everything and to arrange what the service may not. */
  owner: pg.Pool
  /** Opens the connections of a second process; they are closed with the database. */
  secondProcess(poolMax?: number): Database
  /** Waits until so many sessions wait for what another one holds. */
  untilWaiting(sessions?: number): Promise<void>
  /** Closes both and ends whoever else is connected; the database itself goes once the run is over. */
  drop(): Promise<void>
}

/** The limit of connections that marks a database nobody needs any more. */
export const doneWith = 0

/** The database of one test file: made while the file is loaded, dropped at its end. */
export async function useTestDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase()
  afterAll(() => database.drop())
  return database
}

/** Copies the template. @param options.template another database to copy, `template0` for an empty one */
export async function createTestDatabase(options: { template?: string } = {}): Promise<TestDatabase> {
  const { url: serverUrl, template, run } = inject('testServer')
  const name = `test_${run}_${process.pid}_${randomInt(2 ** 40)}`
  await withServer(
    serverUrl,
    `create database ${name} template ${options.template ?? template} strategy file_copy`,
  )
  const url = databaseUrl(serverUrl, name)
  const connection = { connectionString: url }
  const log = () => {}
  const openProcess = (poolMax = 10) => openDatabase({ connection, poolMax, role: serviceRole, log })
  const database = openProcess()
  const others: Database[] = []
  const owner = openPool(connection, 5, null, log)
  const drop = async () => {
    await Promise.all([owner.end(), ...[database, ...others].map((each) => each.close())])
    // Not dropped at once: where many files were just deleted, ext4 takes half a second of processor time for
    // each copy that follows.
    await withServer(
      serverUrl,
      `alter database ${name} connection limit ${doneWith};
       select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
    )
  }
  return {
    name,
    url,
    connection,
    database,
    owner,
    secondProcess(poolMax) {
      const other = openProcess(poolMax)
      others.push(other)
      return other
    },
    untilWaiting: (sessions) => untilWaiting(owner, sessions),
    drop,
  }
}

async function untilWaiting(owner: pg.Pool, sessions = 1): Promise<void> {
  await eventually(async () => {
    const { rowCount } = await owner.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    )
    if (Number(rowCount) < sessions) throw new Error(`${rowCount} sessions wait, not ${sessions}`)
  })
}

async function withServer(url: string, statement: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
