import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { migrate } from '../../src/database/migrate.ts'
import { borrow } from '../kit/client.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { databaseUrl } from '../kit/database-url.ts'

let db: TestDatabase
let folder: string

beforeEach(async () => {
  db = await createTestDatabase({ template: 'template0' })
  onTestFinished(() => db.drop())
  folder = mkdtempSync(join(tmpdir(), 'migrations-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  write('0001_first', 'create table first (id int); insert into first values (1);')
  write('0002_second', 'alter table first add column name text;')
})

function write(name: string, sql: string): void {
  mkdirSync(join(folder, name), { recursive: true })
  writeFileSync(join(folder, name, 'migration.sql'), sql)
}

test('each migration is applied once, in order, and recorded as Prisma would', async () => {
  expect(await migrate(db.url, { folder })).toEqual({ applied: ['0001_first', '0002_second'] })
  expect(await migrate(db.url, { folder })).toEqual({ applied: [] })
  write('0003_third', 'create table third ()')
  expect(await migrate(db.url, { folder })).toEqual({ applied: ['0003_third'] })
  const { rows } = await db.owner.query(
    `select migration_name, length(checksum) as digits, applied_steps_count,
            finished_at >= started_at as finished
     from _prisma_migrations order by 1`,
  )
  expect(rows[0]).toEqual({
    migration_name: '0001_first',
    digits: 64,
    applied_steps_count: 1,
    finished: true,
  })
  expect(rows).toHaveLength(3)
})

test('one of five nodes that start at once applies, and the others find it done', async () => {
  const results = await Promise.all(Array.from({ length: 5 }, () => migrate(db.url, { folder })))
  expect(results.map(({ applied }) => applied.length).toSorted((a, b) => a - b)).toEqual([0, 0, 0, 0, 2])
  expect((await db.owner.query('select from first')).rowCount).toBe(1)
})

test('a migration that fails leaves no change, and the migrations before it stay', async () => {
  write('0003_wrong', 'create table half ();\ncreate table half ();')
  await expect(migrate(db.url, { folder })).rejects.toThrow(
    '0003_wrong failed: relation "half" already exists',
  )
  const { rows } = await db.owner.query(
    "select to_regclass('half') as half, to_regclass('first')::text as first",
  )
  expect(rows).toEqual([{ half: null, first: 'first' }])
  write('0003_wrong', 'create table half ()')
  expect(await migrate(db.url, { folder })).toEqual({ applied: ['0003_wrong'] })
})

test.each(['commit', 'rollback'])(
  'a migration that ends its own transaction by a %s is refused',
  async (end) => {
    write('0003_breaks_out', `create table before (); ${end}; create table after ();`)
    await expect(migrate(db.url, { folder })).rejects.toThrow(
      '0003_breaks_out failed: it ends its own transaction',
    )
    const { rows } = await db.owner.query('select migration_name as name from _prisma_migrations order by 1')
    expect(rows).toEqual([{ name: '0001_first' }, { name: '0002_second' }])
  },
)

test('an edited migration is refused before anything runs', async () => {
  await migrate(db.url, { folder })
  write('0001_first', 'create table first (id bigint)')
  write('0003_third', 'create table third ()')
  await expect(migrate(db.url, { folder })).rejects.toThrow('0001_first was edited')
  expect((await db.owner.query("select to_regclass('third') as third")).rows).toEqual([{ third: null }])
})

test('a migration that another tool left half done is refused', async () => {
  await migrate(db.url, { folder })
  await db.owner.query(
    "update _prisma_migrations set finished_at = null where migration_name = '0002_second'",
  )
  await expect(migrate(db.url, { folder })).rejects.toThrow('0002_second is half done')
})

test('a database that is ahead of this version is left as it is', async () => {
  write('0003_newer', 'create table newer ()')
  await migrate(db.url, { folder })
  rmSync(join(folder, '0003_newer'), { recursive: true })
  const said: string[] = []
  expect(await migrate(db.url, { folder, log: (event) => said.push(event) })).toEqual({ applied: [] })
  expect(said.join()).toContain('0003_newer')
})

test('a migration that waits for a table in use holds up the others for a moment only', async () => {
  await migrate(db.url, { folder })
  write('0003_third', 'alter table first add column third int')
  const reader = await borrow(db.owner)
  await reader.query('begin; select from first')
  let isOver = false
  const applied = migrate(db.url, { folder }).finally(() => (isOver = true))
  await db.untilWaiting()
  // A statement that comes now waits behind the migration, until the migration gives up its lock request.
  await db.owner.query('select from first')
  expect(isOver).toBe(false)
  await reader.query('commit')
  expect(await applied).toEqual({ applied: ['0003_third'] })
})

test('a migration that never gets its table leaves all as it was, and says why', async () => {
  await migrate(db.url, { folder })
  write('0003_third', 'create table third (); alter table first add column third int')
  const reader = await borrow(db.owner)
  await reader.query('begin; select from first')
  await expect(migrate(db.url, { folder, lockTries: 2 })).rejects.toThrow(
    '0003_third failed: canceling statement due to lock timeout; others used the table at each of 2 tries',
  )
  expect((await db.owner.query("select to_regclass('third') as third")).rows).toEqual([{ third: null }])
})

test('the error for an account without the roles names the command of the administrator', async () => {
  const account = `plain_${process.pid}`
  await db.owner.query(`create role ${account} login password 'secret'`)
  onTestFinished(async () => {
    await db.owner.query(`drop owned by ${account}`)
    await db.owner.query(`drop role ${account}`)
  })
  const url = new URL(databaseUrl(db.url))
  url.username = account
  url.password = 'secret'
  const grant = (role: string) => `GRANT ${role} TO ${account} WITH INHERIT FALSE, SET TRUE;`
  await expect(migrate(url.href, { folder })).rejects.toThrow(
    'The database account may not act as payments_service and payments_merchant and payments_owner: let an ' +
      `administrator run ${['payments_service', 'payments_merchant', 'payments_owner'].map(grant).join(' ')}`,
  )
  // As an administrator who does not know better grants it.
  await db.owner.query(`grant payments_service to ${account}; ${grant('payments_owner')}`)
  await expect(migrate(url.href, { folder })).rejects.toThrow(
    'The database account may not act as payments_merchant, and has, before it asks for them, the rights ' +
      'of payments_service: let an administrator run ' +
      `${grant('payments_service')} ${grant('payments_merchant')}`,
  )
  await db.owner.query(`${grant('payments_service')} ${grant('payments_merchant')}`)
  const { rows } = await db.owner.query<{ name: string }>('select current_database() as name')
  const grants = [
    `GRANT CREATE ON DATABASE ${rows[0]?.name} TO payments_owner;`,
    'GRANT CREATE ON SCHEMA public TO payments_owner;',
  ].join(' ')
  await expect(migrate(url.href, { folder })).rejects.toThrow(
    'The database account may not let payments_owner create tables: let the owner of the database run ' +
      grants,
  )
  await db.owner.query(grants)
  expect(await migrate(url.href, { folder })).toEqual({ applied: ['0001_first', '0002_second'] })
})
