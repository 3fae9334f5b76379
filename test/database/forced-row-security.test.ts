import { mkdtemp, rm } from 'node:fs/promises'
import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { scopes } from '../../src/identity/callers/scopes.ts'
import { type App, startApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import { dumpDatabase, loadDump } from '../../src/database/backup-external.ts'
import { asRole, openDatabase } from '../../src/database/client.ts'
import { migrate, serviceRole } from '../../src/database/migrate.ts'
import { ownerRole } from '../../src/database/ownership.ts'
import { proveWhole } from '../../src/ledger/audit.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { createMerchant } from '../../src/resources/merchants/create.ts'
import { openClient } from '../kit/client.ts'
import { makeMerchant } from '../kit/merchants.ts'
import { fundedMerchant, openCollection } from '../kit/money.ts'
import { eventually } from '../kit/eventually.ts'
import { createTestDatabase } from '../kit/database.ts'
import { createPlainAccount, type PlainAccount } from '../kit/plain-account.ts'

// Row-level security is forced on the owner of the tables. It holds no superuser, as which all other tests
// log in: here the service runs on an account as hosted servers give it.

let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator({ port: 0, controlToken: 'test-control-token' })
})
afterAll(() => simulator.close())

function open(url: string) {
  const opened = openDatabase({ connection: url, poolMax: 4, role: serviceRole, log: () => {} })
  onTestFinished(() => opened.close())
  return opened
}

async function start(url: string, dataDir: string): Promise<App> {
  const config = readConfig({
    PORT: '0',
    DATA_DIR: dataDir,
    SECRET_KEY: 'forced-walls-test-secret-key-of-32-characters',
    OPERATORS_URL: simulator.url,
    OPERATORS_CONTROL_TOKEN: 'test-control-token',
    LOG_LEVEL: 'silent',
  })
  const app = await startApp(config, { connectionString: url })
  onTestFinished(() => app.close())
  return app
}

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'merchant-payments-forced-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

const merchantTables = `SELECT c.relname AS name FROM pg_class c
  WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND (c.relname = 'merchant'
    OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'merchant_id'))`

/** How many rows of merchants the session sees, in all tables together; none where it may not ask. */
async function rowsSeen(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ name: string }>(merchantTables)
  expect(rows.length).toBeGreaterThan(30)
  let seen = 0
  for (const { name } of rows) {
    const answer = await client
      .query<{ n: number }>(`SELECT count(*)::int AS n FROM "${name}"`)
      .catch((error: unknown) => {
        if (error instanceof pg.DatabaseError && error.code === '42501') return { rows: [{ n: 0 }] }
        throw error
      })
    seen += answer.rows[0]?.n ?? 0
  }
  return seen
}

/**
 * Lists objects of the service that the role does not own, and tables of merchants without forced row
 * security.
 */
async function unforced(client: pg.ClientBase | pg.Pool): Promise<string[]> {
  const { rows } = await client.query<{ what: string }>(
    `WITH place AS (SELECT oid, nspowner FROM pg_namespace WHERE nspname IN ('public', 'graphile_worker')),
       owned (what, owner) AS (
         SELECT 'relation ' || oid::regclass, relowner FROM pg_class
         WHERE relnamespace IN (SELECT oid FROM place)
         UNION ALL SELECT 'function ' || oid::regprocedure, proowner FROM pg_proc
         WHERE pronamespace IN (SELECT oid FROM place)
         UNION ALL SELECT 'type ' || oid::regtype, typowner FROM pg_type
         WHERE typnamespace IN (SELECT oid FROM place)
         UNION ALL SELECT 'schema', nspowner FROM pg_namespace WHERE nspname = 'graphile_worker')
     SELECT what || ' of ' || pg_get_userbyid(owner) AS what FROM owned
     WHERE pg_get_userbyid(owner) <> 'payments_owner'
     UNION ALL SELECT 'not forced: ' || name FROM (${merchantTables}) AS t (name)
     WHERE EXISTS (SELECT FROM pg_class c WHERE c.oid = name::regclass
       AND NOT (c.relrowsecurity AND c.relforcerowsecurity))`,
  )
  return rows.map(({ what }) => what)
}

async function call(app: App, method: string, path: string, token?: string, body?: object) {
  const answer = await fetch(`${app.services.addresses.publicUrl}/merchant/api${path}`, {
    method,
    headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: answer.status, body: JSON.parse(await answer.text()) }
}

async function pay(app: App, reference: string): Promise<number> {
  const shop = await createMerchant(app.services, { name: 'Boutique' })
  const signedIn = await fetch(`${app.services.addresses.publicUrl}/merchant/api/auth`, {
    method: 'POST',
    headers: {
      'X-API-Key': shop.apiKey,
      'X-API-Secret': shop.apiSecret.reveal(),
      'Content-Type': 'application/json',
    },
    body: JSON.stringify({ scopes }),
  })
  const { token } = ((await signedIn.json()) as { data: { token: string } }).data
  const body = { amount: 5_000, customer_phone: '70000001', payment_method: 'OperatorA', reference }
  expect((await call(app, 'POST', '/pay', token, body)).status).toBe(202)
  await eventually(async () => {
    const { body: found } = await call(app, 'GET', `/payment/status/${reference}`)
    expect(found.state).toBe('success')
  })
  const { body: balance } = await call(app, 'GET', '/balance', token)
  return balance.data.available
}

test('before it asks for a role the account sees no row of any merchant', async () => {
  const account = await createPlainAccount()
  await migrate(account.url)
  const { pool } = open(account.url)
  await openCollection(pool, await makeMerchant(pool))
  await account.itself(async (client) => {
    expect(await rowsSeen(client)).toBe(0)
    await client.query(`SET ROLE ${ownerRole}`)
    expect(await rowsSeen(client)).toBeGreaterThan(3)
  })
})

test('the role owns every table, function and type, and every table of merchants holds it', async () => {
  const account = await createPlainAccount()
  await migrate(account.url)
  expect(await account.itself(unforced)).toEqual([])
  const db = await createTestDatabase()
  onTestFinished(() => db.drop())
  expect(await unforced(db.owner)).toEqual([])
  // As a migration to come makes a table: under the role, and with the wall.
  await db.owner.query(
    `BEGIN; SET LOCAL ROLE ${ownerRole}; CREATE TABLE later (merchant_id int);
     ALTER TABLE later ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
     CREATE POLICY every_row ON later TO payments_owner USING (true);
     INSERT INTO later VALUES (1); COMMIT`,
  )
  expect(await unforced(db.owner)).toEqual([])
  await db.owner.query('CREATE TABLE stray (merchant_id int)')
  expect(await unforced(db.owner)).toEqual(
    expect.arrayContaining(['not forced: stray', expect.stringMatching(/^relation stray of /)]),
  )
})

test('the service takes a payment, starts again and proves its books on such an account', async () => {
  const account = await createPlainAccount()
  const dataDir = await folder()
  const app = await start(account.url, dataDir)
  expect(await pay(app, 'first')).toBe(5_000)
  await app.close()
  // The service sees the state of before: nothing looks like a restored database.
  const again = await start(account.url, dataDir)
  expect(again.services.restores.isWaiting()).toBe(false)
  expect(await pay(again, 'second')).toBe(5_000)
  expect(await proveWhole(again.services.database)).toEqual([])
})

test('the start stops in a sentence where a table is not forced', async () => {
  const account = await createPlainAccount()
  await migrate(account.url)
  await account.administer('ALTER TABLE payout NO FORCE ROW LEVEL SECURITY')
  await expect(start(account.url, await folder())).rejects.toThrow(
    'Row-level security is not forced on payout: the role that owns it would see every merchant there ' +
      'without a policy. Run as the account of DATABASE_URL: SET ROLE payments_owner; ' +
      'ALTER TABLE payout ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;',
  )
})

test('the start stops in a sentence where a table has one more policy', async () => {
  const account = await createPlainAccount()
  await migrate(account.url)
  await account.administer('CREATE POLICY open ON payout USING (true)')
  await expect(start(account.url, await folder())).rejects.toThrow(
    'Row-level security has other policies than the service made: open on payout is not of the service. A ' +
      'merchant may see the rows of others, or lack some. Run as the account of DATABASE_URL: SET ROLE ' +
      'payments_owner; DROP POLICY open ON payout;',
  )
})

/** Leaves a database as `pg_restore --no-owner` by an account that inherits: `name` owns everything. */
async function migrateAs(account: PlainAccount, name: string): Promise<void> {
  await migrate(account.url)
  await account.grantRoles(true)
  await account.administer(`REASSIGN OWNED BY ${ownerRole} TO ${name}`)
}

test('a database that the account owns is given to the role, with every row in it', async () => {
  const account = await createPlainAccount()
  await migrateAs(account, account.name)
  await expect(migrate(account.url)).rejects.toThrow(
    'The database account has, before it asks for them, the rights of payments_service and ' +
      'payments_merchant and payments_owner: let an administrator run ',
  )
  await account.grantRoles(false)
  expect(await account.itself(unforced)).not.toEqual([])
  expect(await migrate(account.url)).toEqual({ applied: [] })
  expect(await account.itself(unforced)).toEqual([])
  const { pool } = open(account.url)
  await openCollection(pool, await fundedMerchant(pool, 1_000n))
  expect(await account.itself(rowsSeen)).toBe(0)
  await expect(account.itself((client) => client.query('SELECT open_installation()'))).rejects.toMatchObject({
    code: '42501',
  })
})

test('giving that meets a table in use says so, changes nothing, and is done by the next start', async () => {
  const account = await createPlainAccount()
  await migrateAs(account, account.name)
  await account.grantRoles(false)
  const before = await account.itself(unforced)
  await account.itself(async (reader) => {
    await reader.query('BEGIN; SELECT FROM payout')
    await expect(migrate(account.url, { lockTries: 1 })).rejects.toThrow(
      'Giving the tables to the role payments_owner failed: canceling statement due to lock timeout; ' +
        'others used the table at each of 1 tries',
    )
    expect(await account.itself(unforced)).toEqual(before)
  })
  await migrate(account.url)
  expect(await account.itself(unforced)).toEqual([])
})

test('the start stops in a sentence where another role owns the tables', async () => {
  const account = await createPlainAccount()
  await migrateAs(account, 'CURRENT_USER')
  await account.grantRoles(false)
  await expect(migrate(account.url)).rejects.toThrow(
    /^The tables belong to the role \w+, and must belong to payments_owner: restore the backup /,
  )
})

const major = (program: string) =>
  Number(/(\d+)/.exec(spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout ?? '')?.[1] ?? 0)

test('a dump by such an account holds every row, and such an account restores it', async (context) => {
  const account = await createPlainAccount()
  const { rows } = await account.itself((client) =>
    client.query<{ major: number }>(`SELECT current_setting('server_version_num')::int / 10000 AS major`),
  )
  const server = rows[0]?.major ?? 0
  if (major('pg_dump') < server) return context.skip(`pg_dump is older than the server (${server})`)
  await migrate(account.url)
  const { pool } = open(account.url)
  await openCollection(pool, await fundedMerchant(pool, 1_000n))
  const before = await account.itself(async (client) => {
    await client.query(`SET ROLE ${ownerRole}`)
    return rowsSeen(client)
  })
  const backup = join(await folder(), 'backup')
  const say = () => {}
  await dumpDatabase(account.url, { folder: backup, secretPath: null, say })
  const other = await account.another()
  await loadDump(other, { folder: backup, say })
  const client = await openClient(asRole(other, ownerRole))
  expect(await rowsSeen(client)).toBe(before)
  expect(await unforced(client)).toEqual([])
  expect(await migrate(other)).toEqual({ applied: [] })
  const app = await start(other, await folder())
  expect(app.services.restores.isWaiting()).toBe(true)
  expect(await pay(app, 'after-the-restore')).toBe(5_000)
})
