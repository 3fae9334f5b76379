import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { scopes } from '../../src/identity/callers/scopes.ts'
import { type App, startApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import { openDatabase, openPool } from '../../src/database/client.ts'
import { openRestores } from '../../src/database/restores.ts'
import { asMerchant } from '../../src/database/merchant-pool.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { createMerchant } from '../../src/resources/merchants/create.ts'
import { proveWhole } from '../../src/ledger/audit.ts'
import { resumePaymentsOut } from '../../src/ledger/payments-out.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { eventually } from '../kit/eventually.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { makeMember } from '../kit/members.ts'

// The signs by which a node notices a restored database, and its steps before it serves. The backup here is a
// copy of the database by PostgreSQL itself.

let simulator: Simulator
const secretKey = 'restores-test-secret-key-of-32-characters'

beforeAll(async () => {
  simulator = await startSimulator({ port: 0, controlToken: 'test-control-token' })
})
afterAll(() => simulator.close())

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'merchant-payments-restores-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

async function database(template?: string): Promise<TestDatabase> {
  const made = await createTestDatabase(template === undefined ? {} : { template })
  onTestFinished(() => made.drop().catch(() => {}))
  return made
}

const nameOf = ({ url }: TestDatabase) => new URL(url).pathname.slice(1)

/** Copies a database that has no other connections. */
async function copyOf(original: TestDatabase): Promise<TestDatabase> {
  const name = nameOf(original)
  await Promise.all([original.database.close(), original.owner.end()])
  return database(name)
}

async function start(
  { connection }: Pick<TestDatabase, 'connection'>,
  dataDir: string,
  more: Record<string, string> = {},
): Promise<App> {
  const config = readConfig({
    PORT: '0',
    DATA_DIR: dataDir,
    SECRET_KEY: secretKey,
    OPERATORS_URL: simulator.url,
    OPERATORS_CONTROL_TOKEN: 'test-control-token',
    LOG_LEVEL: 'silent',
    ...more,
  })
  const app = await startApp(config, connection)
  onTestFinished(() => app.close())
  return app
}

async function shop(app: App) {
  const made = await createMerchant(app.services, { name: 'Boutique' })
  return { id: made.merchantId, key: made.apiKey, secret: made.apiSecret.reveal() }
}

type Shop = Awaited<ReturnType<typeof shop>>

async function call(app: App, method: string, path: string, token?: string, body?: object) {
  const answer = await fetch(`${app.services.addresses.publicUrl}/merchant/api${path}`, {
    method,
    headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: answer.status, body: JSON.parse(await answer.text()) }
}

async function signIn(app: App, { key, secret }: Shop): Promise<{ status: number; token: string }> {
  const answer = await fetch(`${app.services.addresses.publicUrl}/merchant/api/auth`, {
    method: 'POST',
    headers: { 'X-API-Key': key, 'X-API-Secret': secret, 'Content-Type': 'application/json' },
    body: JSON.stringify({ scopes }),
  })
  const { data } = JSON.parse(await answer.text()) as { data?: { token: string } }
  return { status: answer.status, token: data?.token ?? '' }
}

async function pay(app: App, token: string, reference: string): Promise<number> {
  const body = { amount: 5_000, customer_phone: '70000001', payment_method: 'OperatorA', reference }
  const { body: answer } = await call(app, 'POST', '/pay', token, body)
  await eventually(async () => {
    const { body: found } = await call(app, 'GET', `/payment/status/${reference}`)
    expect(found.state).toBe('success')
  })
  return answer.data.transaction_id
}

async function graphql(app: App, token: string, query: string, variables: object = {}) {
  const answer = await fetch(`${app.services.addresses.publicUrl}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
    body: JSON.stringify({ query, variables }),
  })
  return JSON.parse(await answer.text())
}

test('an unused database records its identity; starting again changes nothing', async () => {
  const [db, dataDir] = [await database(), await folder()]
  await (await start(db, dataDir)).close()
  const again = await start(db, dataDir)
  const { rows } = await db.owner.query('SELECT epoch, restored_at FROM installation')
  expect(rows).toEqual([{ epoch: 1, restored_at: null }])
  expect((await call(again, 'GET', '/status')).body.data.components).toMatchObject({
    payments_out: 'operational',
    payments_out_reason: null,
  })
})

test('a copy of the database starts with payments out halted, and says why', async () => {
  const [db, dataDir] = [await database(), await folder()]
  const first = await start(db, dataDir)
  const merchant = await shop(first)
  const { token } = await signIn(first, merchant)
  await pay(first, token, 'before')
  await first.close()
  const copy = await copyOf(db)
  const restored = await start(copy, await folder())

  const { rows } = await copy.owner.query(
    'SELECT reason, restored_epoch FROM payments_out_halt WHERE lifted_at IS NULL',
  )
  expect(rows).toEqual([{ reason: expect.stringContaining('restored: '), restored_epoch: 2 }])
  expect((await call(restored, 'GET', '/status')).body.data).toMatchObject({
    status: 'degraded',
    components: { payments_out: 'down', payments_out_reason: 'restored' },
  })
  await expect(resumePaymentsOut(restored.services.database.pool, 'I want to')).rejects.toMatchObject({
    code: 'STATE_CONFLICT',
    message: expect.stringContaining('restore accept'),
  })
  const { rowCount } = await copy.owner.query('SELECT FROM payments_out_halt WHERE lifted_at IS NULL')
  expect(rowCount).toBe(1)
  // Nor does the database itself lift it.
  const lifted = await restored.services.database.pool.query(`SELECT resume_payments_out('by hand') AS done`)
  expect(lifted.rows).toEqual([{ done: false }])
})

test('after a restore no id, position or receipt is used again; an old cursor is refused', async () => {
  const [db, dataDir] = [await database(), await folder()]
  const first = await start(db, dataDir)
  const merchant = await shop(first)
  const { token } = await signIn(first, merchant)
  const before = await pay(first, token, 'before')
  await first.close()
  const head = await db.owner.query<{ position: bigint }>('SELECT position FROM event_log_position')
  const kept = head.rows[0]?.position ?? 0n
  const backup = await copyOf(db)
  const backupName = nameOf(backup)

  // The changes that are lost: they are made on the original after the copy.
  const original = await start({ connection: { connectionString: db.url } }, dataDir)
  const { token: later } = await signIn(original, merchant)
  const lost = await pay(original, later, 'lost')
  const receipt = await graphql(original, later, '{ transactions(first: 1) { nodes { receiptUrl } } }')
  const lostReceipt = new URL(receipt.data.transactions.nodes[0].receiptUrl).pathname
  await original.close()

  await Promise.all([backup.database.close(), backup.owner.end()])
  const copy = await database(backupName)
  const restored = await start(copy, await folder())
  await copy.owner.query('UPDATE api_key SET suspended_at = NULL')
  const { token: fresh } = await signIn(restored, merchant)
  const next = await pay(restored, fresh, 'next')
  expect(lost).toBe(before + 1)
  expect(next).toBeGreaterThan(lost + 999_999)
  const { rows: positions } = await copy.owner.query<{ id: bigint; position: bigint; type: string }>(
    'SELECT id, position, type FROM event WHERE position > $1 ORDER BY position',
    [kept],
  )
  expect(positions[0]).toMatchObject({ type: 'security_alert' })
  expect(positions[0]?.position).toBeGreaterThan(kept + 1_000_000n)
  expect(positions[0]?.id).toBeGreaterThan(1_000_000n)
  expect((await fetch(`${restored.services.addresses.publicUrl}${lostReceipt}`)).status).toBe(404)

  // The books hold with this gap, and with no other one.
  expect(await proveWhole({ pool: copy.database.pool })).toEqual([])
  await copy.owner.query('UPDATE event_gap SET last_position = last_position - 1')
  const problems = await proveWhole({ pool: copy.database.pool })
  expect(problems.map(({ invariant }) => invariant)).toContain('events_report_every_change')
  await copy.owner.query('UPDATE event_gap SET last_position = last_position + 1')

  const { feed } = restored.services
  await expect(asMerchant(merchant.id, () => feed.start(merchant.id, kept + 2n))).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    message: expect.stringContaining(`Continue from the cursor ${kept}.`),
  })
  expect(await asMerchant(merchant.id, () => feed.start(merchant.id, kept))).toMatchObject({ after: kept })
})

test('without the mark of any node every key is suspended and every session ends', async () => {
  const [db, dataDir] = [await database(), await folder()]
  const first = await start(db, dataDir)
  const merchant = await shop(first)
  const { token } = await signIn(first, merchant)
  const person = await makeMember(first.services.access, merchant.id, 'owner')
  expect((await call(first, 'GET', '/balance', person.token)).status).toBe(200)
  await first.close()
  const copy = await copyOf(db)
  const restored = await start(copy, await folder())
  expect((await signIn(restored, merchant)).status).toBe(401)
  expect((await call(restored, 'GET', '/balance', token)).status).toBe(401)
  expect((await call(restored, 'GET', '/balance', person.token)).status).toBe(401)
  const { rows } = await copy.owner.query(
    'SELECT suspended_at IS NOT NULL AS suspended, version FROM api_key',
  )
  expect(rows).toEqual([{ suspended: true, version: 1_000_001 }])
})

test('a node that kept its mark ends only the keys and sessions whose change is lost', async () => {
  const [db, dataDir] = [await database(), await folder()]
  const first = await start(db, dataDir)
  const [changed, other] = [await shop(first), await shop(first)]
  const { access } = first.services
  const left = await makeMember(access, other.id, 'owner')
  const stays = await makeMember(access, other.id, 'owner')
  await first.close()
  const backup = await copyOf(db)
  const backupName = nameOf(backup)

  const original = await start({ connection: { connectionString: db.url } }, dataDir)
  await graphql(original, left.token, 'mutation { signOut { __typename } }')
  const { token } = await signIn(original, changed)
  const { data } = await graphql(original, token, '{ apiKeys(first: 1) { nodes { id } } }')
  const renewed = await graphql(
    original,
    token,
    'mutation ($id: ID!) { regenerateApiKey(id: $id) { ... on IssuedApiKey { secret } } }',
    { id: data.apiKeys.nodes[0].id },
  )
  expect(renewed.data.regenerateApiKey.secret).toMatch(/^ms_/)
  // Killed here: what was acknowledged stands in the mark already.
  const mark = await readFile(join(dataDir, 'database-mark.json'), 'utf8')
  await original.close()
  await writeFile(join(dataDir, 'database-mark.json'), mark)

  await Promise.all([backup.database.close(), backup.owner.end()])
  const restored = await start(await database(backupName), dataDir)
  expect((await signIn(restored, changed)).status).toBe(401)
  expect((await signIn(restored, other)).status).toBe(200)
  expect((await call(restored, 'GET', '/balance', left.token)).status).toBe(401)
  expect((await call(restored, 'GET', '/balance', stays.token)).status).toBe(200)
})

test('a database that lacks commits that this node saw was put back, also at the same place', async () => {
  const [db, dataDir] = [await database(), await folder()]
  const first = await start(db, dataDir)
  const merchant = await shop(first)
  await pay(first, (await signIn(first, merchant)).token, 'before')
  await first.close()
  await db.owner.query(
    `SET session_replication_role = replica; DELETE FROM event WHERE id = (SELECT max(id) FROM event);
     SET session_replication_role = origin`,
  )
  const restored = await start(db, dataDir)
  expect((await call(restored, 'GET', '/status')).body.data.components.payments_out_reason).toBe('restored')
})

test('a node reads its epoch from DATABASE_EPOCH, and refuses a database in another one', async () => {
  const [db, dataDir] = [await database(), await folder()]
  await (await start(db, dataDir, { DATABASE_EPOCH: '1' })).close()
  await expect(start(db, dataDir, { DATABASE_EPOCH: '2' })).rejects.toThrow(
    /is in epoch 1, and DATABASE_EPOCH is 2/,
  )
  const copy = await copyOf(db)
  await expect(start(copy, await folder(), { DATABASE_EPOCH: '1' })).rejects.toThrow(
    /was restored: it is in epoch 2, and DATABASE_EPOCH is 1/,
  )
  const { rows } = await copy.owner.query(
    'SELECT count(*)::int AS halts FROM payments_out_halt WHERE lifted_at IS NULL',
  )
  expect(rows).toEqual([{ halts: 1 }])
})

test('a running node halts before the first session of a promoted database is used', async () => {
  const [db, dataDir] = [await database(), await folder()]
  const app = await start(db, dataDir)
  const { pool } = app.services.database
  // As after a failover: all sessions are gone, and the server that answers is on another timeline.
  await db.owner.query('UPDATE installation SET timeline = timeline + 1')
  const held = openPool(db.connection, 1, null, () => {})
  onTestFinished(() => held.end())
  await held.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  )
  // Sessions that are gone fail once. The first answer of another one must tell of the halt.
  const isHalted = 'SELECT EXISTS (SELECT FROM payments_out_halt WHERE lifted_at IS NULL) AS halted'
  const answer = await eventually(() => pool.query(isHalted))
  expect(answer.rows).toEqual([{ halted: true }])
  // Another session may have begun the epoch: the process itself hears of it a moment later.
  await eventually(() => expect(app.services.restores.isWaiting()).toBe(true))
})

test('the look for a restore does not wait for itself in the first session after a failover', async () => {
  const [db, dataDir] = [await database(), await folder()]
  const restores = await openRestores({
    connection: db.connection,
    dataDir,
    expectedEpoch: null,
    suspendsUnknown: true,
    log: createLog('silent'),
  })
  const opened = openDatabase({
    connection: db.connection,
    poolMax: 2,
    role: null,
    log: () => {},
    checkSession: (client) => restores.checkSession(client),
  })
  onTestFinished(() => opened.close())
  restores.use(opened.pool)
  await db.owner.query('UPDATE installation SET timeline = timeline + 1')
  await restores.look()
  expect(restores.isWaiting()).toBe(true)
})
