import { randomInt } from 'node:crypto'
import type pg from 'pg'
import { inject, onTestFinished } from 'vitest'
import { databaseUrl } from './database-url.ts'
import { session } from './session.ts'

/** An account that owns an empty database and is no superuser, as hosted servers provide it. */
export interface PlainAccount {
  name: string
  /** The address of its database, under this account. */
  url: string
  /** Runs statements in the database as an administrator. */
  administer(statements: string): Promise<void>
  /** Runs `work` in a session with the account's own rights. */
  itself<T>(work: (client: pg.Client) => Promise<T>): Promise<T>
  /**
   * Lets the account act as the roles of the service.
   * @param inherits whether it has their rights without `SET ROLE`
   */
  grantRoles(inherits: boolean): Promise<void>
  /** Makes another empty database of the account. @returns its address */
  another(): Promise<string>
}

/** Makes an account that may act as the roles of the service, and inherits none of their rights. */
export async function createPlainAccount(): Promise<PlainAccount> {
  const { url: serverUrl, run } = inject('testServer')
  const name = `plain_${process.pid}_${randomInt(2 ** 40)}`
  const databases: string[] = []
  const urlOf = (database: string) => {
    const url = new URL(databaseUrl(serverUrl, database))
    Object.assign(url, { username: name, password: 'secret' })
    return url.href
  }
  const makeDatabase = async () => {
    const database = `test_${run}_${process.pid}_${randomInt(2 ** 40)}`
    await query(serverUrl, `CREATE DATABASE ${database} OWNER ${name} TEMPLATE template0`)
    databases.push(database)
    return database
  }
  await query(serverUrl, `CREATE ROLE ${name} LOGIN PASSWORD 'secret'`)
  onTestFinished(async () => {
    for (const database of databases) await query(serverUrl, `DROP DATABASE ${database} WITH (FORCE)`)
    await query(serverUrl, `DROP ROLE ${name}`)
  })
  const grantRoles = async (inherits: boolean) => {
    const grant = `GRANT payments_service, payments_merchant, payments_owner TO ${name}`
    const isNew = await session(serverUrl, (client) =>
      client.query(`SELECT WHERE current_setting('server_version_num')::int >= 160000`),
    )
    if (isNew.rowCount) await query(serverUrl, `${grant} WITH INHERIT ${inherits}, SET TRUE`)
    else await query(serverUrl, `${grant}; ALTER ROLE ${name} ${inherits ? 'INHERIT' : 'NOINHERIT'}`)
  }
  await grantRoles(false)
  const database = await makeDatabase()
  return {
    name,
    url: urlOf(database),
    administer: (statements) => query(databaseUrl(serverUrl, database), statements),
    itself: (work) => ownSession(urlOf(database), work),
    grantRoles,
    another: async () => urlOf(await makeDatabase()),
  }
}

async function query(url: string, statements: string): Promise<void> {
  // One by one: a database is made and dropped outside of a transaction.
  await ownSession(url, (client) => client.query(statements))
}

function ownSession<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  return session(url, async (client) => {
    await client.query('SET ROLE none')
    return work(client)
  })
}
