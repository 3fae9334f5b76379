import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import { openDatabase } from '../../src/database/client.ts'
import { migrate, serviceRole } from '../../src/database/migrate.ts'
import { verifyOwnSessions, verifyTenantRls } from '../../src/database/verify-session.ts'
import { borrow, openClient } from '../kit/client.ts'
import { makeMerchant } from '../kit/merchants.ts'
import { openCollection } from '../kit/money.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase()
  const merchant = await makeMerchant(db.database.pool)
  await openCollection(db.database.pool, merchant)
  // Each start does this: it sets how sessions of the account begin.
  await migrate(db.connection)
})
afterAll(() => db.drop())

/** A pooler that drops startup parameters, as PgBouncer's `ignore_startup_parameters` does. */
async function dropOptions(): Promise<string> {
  const target = new pg.Client(db.url)
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = target.host.startsWith('/')
      ? connect(`${target.host}/.s.PGSQL.${target.port}`)
      : connect(target.port, target.host)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
    }
    client.once('data', (startup) => {
      upstream.write(withoutOptions(startup))
      client.pipe(upstream)
    })
    upstream.pipe(client)
    client.once('close', () => upstream.destroy())
    upstream.once('close', () => client.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const url = new URL(db.url)
  const { port } = server.address() as AddressInfo
  const address = new URL(`postgresql://127.0.0.1:${port}${url.pathname}`)
  address.username = encodeURIComponent(target.user ?? '')
  address.password = encodeURIComponent(target.password ?? '')
  return address.href
}

/** A startup message: its length, the version of the protocol, then names and values in turn. */
function withoutOptions(startup: Buffer): Buffer {
  const words = startup.subarray(8).toString().split('\0').slice(0, -2)
  const kept: string[] = []
  for (let at = 0; at + 1 < words.length; at += 2) {
    if (words[at] !== 'options' && words[at] !== 'statement_timeout' && words[at] !== 'lock_timeout')
      kept.push(words[at] ?? '', words[at + 1] ?? '')
  }
  const body = Buffer.from(`${kept.join('\0')}\0\0`)
  const head = Buffer.alloc(8)
  head.writeInt32BE(8 + body.length, 0)
  startup.copy(head, 4, 4, 8)
  return Buffer.concat([head, body])
}

describe('behind a pooler that drops the startup options', () => {
  test('no session of any pool is used', async () => {
    const connection = await dropOptions()
    const opened = openDatabase({ connection, poolMax: 2, role: serviceRole, log: () => {} })
    onTestFinished(() => opened.close())
    const words = (role: string) =>
      `acts as "payments_merchant", not as "${role}": something between the service and PostgreSQL drops`
    await expect(opened.pool.query('SELECT 1')).rejects.toThrow(words(serviceRole))
    expect(opened.pool.totalCount).toBe(0)
    // Its role is right by chance, and all else holds: what a merchant reads there is walled.
    const { rows } = await opened.merchantPool.query('SELECT count(*) FROM transaction')
    expect(rows).toEqual([{ count: 0n }])
  })

  test('the service does not start, and its error names the remedy', async () => {
    const connectionString = await dropOptions()
    const config = readConfig({ PORT: '0', OPERATORS_URL: 'http://127.0.0.1:9', LOG_LEVEL: 'silent' })
    await expect(startApp(config, { connectionString })).rejects.toThrow(
      /acts as "payments_merchant", not as "payments_service".*Point DATABASE_URL at PostgreSQL itself/,
    )
  })

  test('a session that asked for no role sees no merchant, though its account owns all tables', async () => {
    const client = await openClient(await dropOptions())
    const { rows } = await client.query(
      `SELECT current_user::text AS role, (SELECT count(*)::int FROM transaction) AS transactions,
         (SELECT count(*)::int FROM merchant) AS merchants`,
    )
    expect(rows).toEqual([{ role: 'payments_merchant', transactions: 0, merchants: 0 }])
    // Not emptiness: the same account sees them once it asks for its own rights.
    await client.query('SET ROLE none')
    const seen = await client.query('SELECT count(*)::int AS transactions FROM transaction')
    expect(seen.rows).toEqual([{ transactions: 1 }])
  })
})

describe('behind a pooler in transaction mode', () => {
  /** Sessions as a pooler's clients see them: each statement goes to the session that `choose` names. */
  async function pooled(choose: (turn: number) => number): Promise<pg.Pool> {
    const opened = openDatabase({
      connection: db.url,
      poolMax: 1,
      merchantPoolMax: 3,
      role: serviceRole,
      log: () => {},
    })
    const sessions = await Promise.all([1, 2, 3].map(() => borrow(opened.merchantPool)))
    onTestFinished(async () => {
      for (const session of sessions) session.release(true)
      await opened.close()
    })
    let turn = 0
    const query = (text: string) => sessions[choose(turn++) % 3]?.query(text)
    return { connect: async () => ({ query, release: () => {} }) } as unknown as pg.Pool
  }
  const words = 'A database session lost the merchant that it was bound to'

  test('a session whose next statement goes elsewhere is refused', async () => {
    const client = await borrow(await pooled((turn) => turn))
    await expect(verifyTenantRls(client, 'payments_merchant')).rejects.toThrow(words)
  })

  test.each<[string, (turn: number) => number]>([
    ['all statements go to the session that was used last', () => 0],
    ['two sessions serve by turns', (turn) => turn % 2],
    ['three sessions serve by turns', (turn) => turn],
  ])('the start is refused where %s', async (_name, choose) => {
    await expect(verifyOwnSessions(await pooled(choose))).rejects.toThrow(words)
  })
})

test('ordinary sessions pass all checks, and are left without a merchant', async () => {
  const { merchantPool } = db.database
  await verifyOwnSessions(merchantPool)
  const sessions = await Promise.all(Array.from({ length: 4 }, () => borrow(merchantPool)))
  const found = await Promise.all(
    sessions.map((each) => each.query(`SELECT current_setting('app.merchant') AS merchant`)),
  )
  for (const session of sessions) session.release()
  expect(found.map(({ rows }) => rows[0].merchant)).toEqual(['', '', '', ''])
})

test('a role that row-level security does not hold is refused', async () => {
  const client = await openClient(db.url)
  await client.query('SET ROLE none')
  const { rows: users } = await client.query<{ role: string }>('SELECT current_user::text AS role')
  await expect(verifyTenantRls(client, users[0]?.role ?? '')).rejects.toThrow(
    'Row-level security is off for the',
  )
})
