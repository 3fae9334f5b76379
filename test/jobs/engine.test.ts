import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type AddressInfo, connect, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { borrow } from '../kit/client.ts'
import { eventually, eventuallyGives } from '../kit/eventually.ts'
import { jobsSchemaVersion } from '../../src/database/jobs-schema.ts'
import { migrate, serviceRole } from '../../src/database/migrate.ts'
import { engineBounds, type JobEngine, startEngine } from '../../src/jobs/engine.ts'
import { recoverJobs } from '../../src/jobs/recover.ts'
import { startJobs } from '../../src/jobs/schedule.ts'
import { jobBounds } from '../../src/resources/jobs.ts'
import type { Provider } from '../../src/shared/providers.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { hour } from '../kit/fixture.ts'
import { useBounds } from '../kit/use-bounds.ts'

const log = createLog('silent')
let db: TestDatabase
beforeEach(async () => {
  db = await createTestDatabase()
})
afterEach(() => db.drop())

/**
 * Starts an engine and records its jobs; a job of an operator in `fails` fails, of one in `hangs` never ends.
 */
function start(connection = db.connection): {
  engine: JobEngine
  ran: Provider[]
  fails: Set<Provider>
  hangs: Set<Provider>
  close: () => Promise<void>
} {
  const ran: Provider[] = []
  const [fails, hangs] = [new Set<Provider>(), new Set<Provider>()]
  const engine = startEngine({
    connection,
    role: serviceRole,
    jobsAtOnce: 8,
    sessionsMax: 8,
    tasks: {
      'payouts.send': async ({ provider }) => {
        ran.push(provider)
        if (fails.has(provider)) throw new Error('as told')
        if (hangs.has(provider)) await new Promise(() => {})
      },
    },
    log,
  })
  const recovery = startJobs(
    [
      {
        name: 'jobs.recover',
        everyMs: jobBounds.recoverEveryMs,
        run: async () => (await recoverJobs(db.database.pool, {})) > 99,
      },
    ],
    log,
  )
  let closed: Promise<void> | undefined
  const close = () => (closed ??= Promise.all([engine.close(), recovery.close()]).then(() => {}))
  onTestFinished(() => close())
  return { engine, ran, fails, hangs, close }
}

function enqueue(provider: Provider, client: pg.Pool | pg.PoolClient = db.owner): Promise<unknown> {
  return client.query(`SELECT enqueue_each('payouts.send', 'provider', ARRAY[$1::provider])`, [provider])
}

const seen = (ran: readonly Provider[], provider: Provider, times = 1) =>
  eventuallyGives(
    async () => ran.filter((each) => each === provider).length,
    (count) => count >= times,
  )
const jobsLeft = async () =>
  Number((await db.owner.query('SELECT count(*) AS n FROM graphile_worker._private_jobs')).rows[0].n)
const noneLeft = () => eventuallyGives(jobsLeft, (left) => left === 0)

/** How many engines show that they live. */
async function locksHeld(): Promise<number> {
  const { rows } = await db.owner.query<{ held: number }>(
    `SELECT count(*)::int AS held FROM pg_locks
     WHERE locktype = 'advisory' AND classid = 72707375 AND granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  )
  return rows[0]?.held ?? 0
}

/** From its start on the engine looks for jobs only where a notification tells it to. */
const stopLooks = () => useBounds(engineBounds, { pollMs: hour }, onTestFinished)

/** Waits until the engine listens: a notification before that is lost, and only a look finds its job. */
const engineListens = () =>
  eventually(async () => {
    const { rowCount } = await db.owner.query(
      `SELECT FROM pg_stat_activity
       WHERE datname = current_database() AND query LIKE 'LISTEN "jobs:insert"%' AND state = 'idle'`,
    )
    expect(rowCount).toBe(1)
  })

test('the notification of its commit brings an enqueued job, and then its row is gone', async () => {
  stopLooks()
  const { ran, engine, close } = start()
  await engineListens()
  await enqueue('OperatorA')
  await seen(ran, 'OperatorA')
  const next = ['OperatorB', 'OperatorC', 'OperatorD'] as const
  for (const provider of next) {
    await enqueue(provider)
    await seen(ran, provider)
  }
  await noneLeft()
  expect(ran).toEqual(['OperatorA', ...next])
  expect(engine.healthy()).toBe(true)
  await close()
  // Nothing of it stays connected.
  expect(await eventuallyGives(locksHeld, (held) => held === 0)).toBe(0)
})

test('a job enqueued by a rolled-back transaction never runs', async () => {
  const { ran } = start()
  const client = await borrow(db.owner)
  await client.query('BEGIN')
  await enqueue('OperatorC', client)
  await client.query('ROLLBACK')
  client.release()
  await enqueue('OperatorD')
  await seen(ran, 'OperatorD')
  await noneLeft()
  expect(ran).toEqual(['OperatorD'])
})

test('a waiting job stands for all later enqueues, a failed one does not', async () => {
  await Promise.all(Array.from({ length: 20 }, () => enqueue('OperatorA')))
  expect(await jobsLeft()).toBe(1)
  stopLooks()
  const { ran, fails } = start()
  fails.add('OperatorA')
  await seen(ran, 'OperatorA')
  await eventuallyGives(
    async () => (await db.owner.query('SELECT last_error AS e FROM graphile_worker._private_jobs')).rows,
    (rows) => rows.length === 1 && rows[0].e === 'as told',
  )
  fails.clear()
  await engineListens()
  // The failed one waits for a look.
  await enqueue('OperatorA')
  await seen(ran, 'OperatorA', 2)
  await db.owner.query('UPDATE graphile_worker._private_jobs SET run_at = now()')
  await enqueue('OperatorB')
  await noneLeft()
})

test('the job of a killed process runs again, by the notification of its recovery', async () => {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'engine-child.ts'), db.url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (chunk) => (said += String(chunk)))
  await enqueue('OperatorB')
  await once(child.stdout, 'data')
  stopLooks()
  const { ran } = start()
  await engineListens()
  // No engine takes a job from an engine that lives, not even that engine itself.
  for (let look = 0; look < 3; look += 1) expect(await recoverJobs(db.database.pool, {})).toBe(0)
  expect({ said, ran }).toEqual({ said: 'OperatorB\n', ran: [] })
  child.kill('SIGKILL')
  await seen(ran, 'OperatorB')
  await noneLeft()
})

test('the engine works on after all its connections were cut', async () => {
  const { ran, engine } = start()
  await enqueue('OperatorA')
  await seen(ran, 'OperatorA')
  const cut = () =>
    db.owner.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid()
         AND query !~ 'pg_terminate_backend'`,
    )
  await cut().catch(() => {})
  await enqueue('OperatorB').catch(() => enqueue('OperatorB'))
  await seen(ran, 'OperatorB')
  expect(ran).toEqual(['OperatorA', 'OperatorB'])
  await eventuallyGives(
    () => locksHeld(),
    (held) => held === 1 && engine.healthy(),
  )
})

test('an engine that ends while its listening connection breaks ends no other engine', async () => {
  const url = new URL(db.url)
  const [host, port] = [decodeURIComponent(url.hostname), Number(url.port || 5432)]
  const listens = Promise.withResolvers<() => void>()
  const server = createServer((client) => {
    const database = host.startsWith('/') ? connect(join(host, `.s.PGSQL.${port}`)) : connect(port, host)
    const end = () => [client, database].forEach((side) => side.destroy())
    for (const side of [client, database]) side.on('error', end).on('close', end)
    client.on('data', (bytes) => {
      // A new listener receives nothing.
      if (bytes.includes('LISTEN "jobs:insert"')) listens.resolve(end)
      else database.write(bytes)
    })
    database.pipe(client)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const broken: unknown[] = []
  const note = (reason: unknown) => void broken.push(reason)
  process.on('unhandledRejection', note)
  onTestFinished(() => void process.off('unhandledRejection', note))
  const { port: ours } = server.address() as AddressInfo
  const { close } = start({ connectionString: db.url.replace(url.host, `127.0.0.1:${ours}`) })
  const cut = await listens.promise
  const closed = close()
  // Until it lets go of what it listens on.
  await sleep(300)
  cut()
  await closed
  // The unawaited answer has come by now.
  await sleep(50)
  expect(broken).toEqual([])
})

test('the engine works on while the end of one job cannot be recorded and another never ends', async () => {
  const { ran, hangs } = start()
  hangs.add('OperatorC')
  await enqueue('OperatorC')
  await seen(ran, 'OperatorC')
  hangs.clear()
  await db.owner.query(`REVOKE DELETE ON graphile_worker._private_jobs FROM ${serviceRole}`)
  await enqueue('OperatorA')
  // Again: the engine is another.
  await seen(ran, 'OperatorA', 2)
  await db.owner.query(`GRANT DELETE ON graphile_worker._private_jobs TO ${serviceRole}`)
  await enqueue('OperatorB')
  await seen(ran, 'OperatorB')
  // The jobs of the ended engine were released, and end now.
  expect(await noneLeft()).toBe(0)
})

test('the engine works on although its first look for jobs failed', async () => {
  await db.owner.query(`REVOKE SELECT ON graphile_worker._private_tasks FROM ${serviceRole}`)
  const { engine, ran } = start()
  await enqueue('OperatorA')
  // It stopped because of that look, and starts again.
  await eventually(() => !engine.healthy())
  expect(ran).toEqual([])
  await db.owner.query(`GRANT SELECT ON graphile_worker._private_tasks TO ${serviceRole}`)
  await eventually(() => expect(ran).toEqual(['OperatorA']))
})

test('a job without tries left that no engine runs is swept away', async () => {
  await enqueue('OperatorA')
  await db.owner.query('UPDATE graphile_worker._private_jobs SET attempts = max_attempts')
  await recoverJobs(db.database.pool, {})
  expect(await jobsLeft()).toBe(0)
})

test('its tables are those of the installed library, made once', async () => {
  const library = createRequire(import.meta.url).resolve('graphile-worker')
  const migrations = readdirSync(join(dirname(library), '../sql')).map((name) => Number.parseInt(name, 10))
  expect(Math.max(...migrations)).toBe(jobsSchemaVersion)
  const { rows } = await db.owner.query('SELECT max(id) AS version FROM graphile_worker.migrations')
  expect(rows).toEqual([{ version: jobsSchemaVersion }])
  expect(await migrate(db.url)).toEqual({ applied: [] })
})
