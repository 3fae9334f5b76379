import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { afterAll, inject } from 'vitest'
import { type Database, openDatabase, openPool } from '../../src/database/client.ts'
import { serviceRole } from '../../src/database/migrate.ts'
import { databaseUrl } from './database-url.ts'
import { eventually } from './eventually.ts'
import { session } from './session.ts'

/** A database of its own for one test file, with all migrations applied and nothing else in it. */
export interface TestDatabase {
  name: string
  /** The address for a program that connects by itself (`DATABASE_URL`). */
  url: string
  connection: pg.ClientConfig
  /** The connections of the service, under its role. */
  database: Database
  /** Connections with the rights of the owner, to read and change what the service may not. */
  owner: pg.Pool
  /** Opens the connections of a second process; they are closed with the database. */
  secondProcess(poolMax?: number): Database
  /** Waits until so many sessions wait for a lock of another session. */
  untilWaiting(sessions?: number): Promise<void>
  /** Closes all connections, also those of other programs; the database itself is dropped after the run. */
  drop(): Promise<void>
}

/** The end of a pool waits for all of its clients: one that is never released must not hang the run. */
const endMsMax = 60_000

/** The connection limit that marks a database as no longer used. */
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
    const ending = Promise.all([owner.end(), ...[database, ...others].map((each) => each.close())])
    const isOver = await Promise.race([ending, sleep(endMsMax, false, { ref: false })])
    // Not dropped at once: where many files were just deleted, ext4 takes half a second of processor time for
    // each copy that follows.
    await withServer(
      serverUrl,
      `alter database ${name} connection limit ${doneWith};
       select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
    )
    if (isOver === false) throw new Error(`A client of ${name} was not released, or its statement went on.`)
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
  await session(url, (client) => client.query(statement))
}
