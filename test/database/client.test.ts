import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { listen, openDatabase, openPool } from '../../src/database/client.ts'
import { borrow } from '../kit/client.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { usualWaits } from '../kit/patience.ts'
import { useBounds } from '../kit/use-bounds.ts'
import { waits } from '../../src/shared/waits.ts'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase()
  await db.owner.query(`
    create table sample (id int primary key, amount int8, amounts int8[], at timestamptz(3));
    grant select, insert on sample to payments_service`)
})
afterAll(() => db.drop())

const row = {
  id: 1,
  amount: 9007199254740993n,
  amounts: [1n, -2n, 9007199254740993n],
  at: new Date('2026-01-31T08:00:00.123Z'),
}

test('int8 and its arrays are bigint both ways, timestamptz is a Date', async () => {
  const values = [row.id, row.amount, row.amounts, row.at]
  const { pool } = db.database
  await pool.query('insert into sample values ($1, $2, $3, $4)', values)
  expect((await pool.query('select * from sample')).rows).toEqual([row])
  const { rows } = await pool.query(
    "select '{}'::int8[] as none, '{NULL,5}'::int8[] as some, null::int8[] as null",
  )
  expect(rows).toEqual([{ none: [], some: [null, 5n], null: null }])
})

test('Prisma reads the same values in every time zone of the server', async () => {
  const { rows } = await db.owner.query<{ name: string }>('select current_database() as name')
  await db.owner.query(`alter database "${rows[0]?.name}" set timezone = 'Asia/Kolkata'`)
  const opened = openDatabase({ connection: db.url, poolMax: 2, role: null, log: () => {} })
  onTestFinished(() => opened.close())
  const read = await opened.prisma.$queryRaw<
    unknown[]
  >`select id, amount, amounts, at from sample where at = ${row.at}`
  expect(read).toEqual([row])
  expect([opened.pool.totalCount, opened.merchantPool.totalCount]).toEqual([0, 1])
})

test('every session has only the rights of the service role, for every database address', async () => {
  const url = new URL(db.url)
  url.searchParams.set('options', '-c work_mem=12MB -c role=none')
  const pool = openPool(url.href, 1, 'payments_service', () => {})
  onTestFinished(() => pool.end())
  expect(
    (await pool.query('select current_user as role, current_setting($1) as memory', ['work_mem'])).rows,
  ).toEqual([{ role: 'payments_service', memory: '12MB' }])
  await expect(pool.query('drop table sample')).rejects.toThrow('must be owner')
  await pool.query('reset role')
  await expect(pool.query('drop table sample')).rejects.toThrow('must be owner')
})

test('statements, locks and idle transactions have their time limits', async () => {
  useBounds(waits, usualWaits, onTestFinished)
  const pool = openPool(db.url, 1, null, () => {})
  onTestFinished(() => pool.end())
  const { rows } = await pool.query(
    `select current_setting('statement_timeout') as statement, current_setting('lock_timeout') as lock,
            current_setting('idle_in_transaction_session_timeout') as idle,
            current_setting('TimeZone') as zone`,
  )
  expect(rows).toEqual([{ statement: '5s', lock: '2s', idle: '5s', zone: 'UTC' }])
})

test('an exhausted pool refuses after two seconds instead of waiting for ever', async () => {
  useBounds(waits, usualWaits, onTestFinished)
  const pool = openPool(db.url, 1, null, () => {})
  onTestFinished(() => pool.end())
  const busy = await borrow(pool)
  await expect(pool.query('select 1')).rejects.toThrow('timeout exceeded')
  busy.release()
  expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
})

test('idle connections that the server ends are replaced, and reported in one line', async () => {
  const told = Promise.withResolvers<string>()
  const pool = openPool(db.url, 2, null, told.resolve)
  onTestFinished(() => pool.end())
  const sessions = await Promise.all([borrow(pool), borrow(pool)])
  const asked = sessions.map((session) => session.query<{ pid: number }>('select pg_backend_pid() as pid'))
  const pids = (await Promise.all(asked)).map(({ rows }) => rows[0]?.pid)
  for (const session of sessions) session.release()
  await db.owner.query('select pg_terminate_backend(pid) from unnest($1::int[]) pid', [pids])
  expect(await told.promise).toBe(
    'database connections lost while idle: 2 (terminating connection due to administrator command)',
  )
  expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
})

test('Prisma prepares a statement once per session', async () => {
  const { prisma } = db.database
  for (let round = 0; round < 3; round += 1) await prisma.$queryRaw`select ${round}::int as round`
  const prepared = await prisma.$queryRaw<unknown[]>`
    select name from pg_prepared_statements
    where statement like 'select $1::int as round%' and name like 'prisma\\_%'`
  expect(prepared).toHaveLength(1)
})

test('a listener hears its channels, and begins again when its connection breaks', async () => {
  const heard: string[] = []
  const signals = { connected: Promise.withResolvers<void>(), heard: Promise.withResolvers<void>() }
  const listener = listen({
    connection: db.url,
    channels: ['events', 'other channel'],
    onNotification: (channel, payload) => {
      heard.push(`${channel}: ${payload}`)
      signals.heard.resolve()
    },
    onConnect: () => signals.connected.resolve(),
    log: () => {},
  })
  await signals.connected.promise
  await db.owner.query("select pg_notify('other channel', 'one')")
  await signals.heard.promise
  signals.connected = Promise.withResolvers()
  signals.heard = Promise.withResolvers()
  await db.owner.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name = 'merchant-payments listener'`,
  )
  await signals.connected.promise
  await db.owner.query("select pg_notify('events', 'two')")
  await signals.heard.promise
  await listener.close()
  await db.owner.query("select pg_notify('events', 'three')")
  expect(heard).toEqual(['other channel: one', 'events: two'])
  const left = await db.owner.query(
    `select from pg_stat_activity
     where datname = current_database() and application_name = 'merchant-payments listener'`,
  )
  expect(left.rowCount).toBe(0)
})
