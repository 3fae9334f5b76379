import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { readFunctions } from '../../src/database/functions.ts'
import { migrate } from '../../src/database/migrate.ts'
import { openClient } from '../kit/client.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { eventually } from '../kit/eventually.ts'

describe('our functions', () => {
  test('each has one file, which is named like it and defines nothing else', async () => {
    const db = await createTestDatabase()
    onTestFinished(() => db.drop())
    const { rows } = await db.owner.query<{ name: string }>(
      `SELECT DISTINCT proname AS name FROM pg_proc WHERE pronamespace = 'public'::regnamespace`,
    )
    const { files } = readFunctions()
    const defined = files.flatMap(({ path, sql }) => {
      const names = [...sql.matchAll(/^CREATE OR REPLACE FUNCTION (\w+)/gm)].map(([, name]) => name)
      expect([path, ...new Set(names)]).toEqual([path, basename(path, '.sql')])
      return basename(path, '.sql')
    })
    expect(defined.toSorted()).toEqual(rows.map(({ name }) => name).toSorted())
  })

  test('one has several forms only for the rows of several tables, and all give the same', async () => {
    const db = await createTestDatabase()
    onTestFinished(() => db.drop())
    const { rows } = await db.owner.query<{ name: string; forms: number; results: number; others: number }>(
      `SELECT proname AS name, count(*)::int AS forms, count(DISTINCT prorettype)::int AS results,
         count(*) FILTER (WHERE pronargs <> 1 OR NOT EXISTS (
           SELECT FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid
           WHERE t.oid = proargtypes[0] AND c.relkind = 'r'))::int AS others
       FROM pg_proc WHERE pronamespace = 'public'::regnamespace
       GROUP BY proname HAVING count(*) > 1 ORDER BY proname`,
    )
    expect(rows).toEqual([{ name: 'approvable_of', forms: 4, results: 1, others: 0 }])
  })

  test('only the roles that a file names may call its function', async () => {
    const db = await createTestDatabase()
    onTestFinished(() => db.drop())
    const { rows } = await db.owner.query(
      `SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
         AND has_function_privilege('pg_monitor', oid, 'EXECUTE')`,
    )
    expect(rows).toEqual([])
  })

  test('no line of SQL has more than 110 columns', () => {
    const paths = [...globSync('src/**/*.sql'), ...globSync('prisma/migrations/*/migration.sql')]
    expect(paths.length).toBeGreaterThan(100)
    const isWide = (path: string) =>
      readFileSync(path, 'utf8')
        .split('\n')
        .some((line) => line.length > 110)
    expect(paths.filter(isWide)).toEqual([])
  })

  test('no function has more than 160 lines', () => {
    const isLong = (path: string) => readFileSync(path, 'utf8').trimEnd().split('\n').length > 160
    expect(globSync('src/**/*.sql').filter(isLong)).toEqual([])
  })

  test('a list of arguments or columns that is longer than a line has one line for each', () => {
    const lists = globSync('src/**/*.sql').flatMap((path) => [
      ...readFileSync(path, 'utf8').matchAll(
        /^(?:CREATE OR REPLACE FUNCTION \w+|.*RETURNS TABLE )\(\n?(?:[^)]*\n)+/gm,
      ),
    ])
    expect(lists.length).toBeGreaterThan(50)
    const dense = lists
      .flatMap(([list]) => list.trimEnd().split('\n').slice(1))
      .filter((line) => /,./.test(line))
    expect(dense).toEqual([])
  })

  test('migrations hold tables and data only', () => {
    for (const path of globSync('prisma/migrations/*/migration.sql'))
      expect(readFileSync(path, 'utf8')).not.toMatch(/CREATE (OR REPLACE )?(FUNCTION|PROCEDURE|TRIGGER)/)
  })
})

describe('functions that change', () => {
  let db: TestDatabase
  let folder: string
  let functions: string
  beforeEach(async () => {
    db = await createTestDatabase({ template: 'template0' })
    onTestFinished(() => db.drop())
    folder = mkdtempSync(join(tmpdir(), 'functions-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    functions = join(folder, 'src')
    mkdirSync(join(folder, '0001_first'))
    mkdirSync(functions)
    writeFileSync(join(folder, '0001_first/migration.sql'), 'CREATE TABLE "first" ("n" int)')
    write('answer', 'answer() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$')
  })

  function write(name: string, definition: string | null, header = '-- Answers.'): void {
    const path = join(functions, `${name}.sql`)
    if (definition === null) rmSync(path)
    else writeFileSync(path, `${header}\nCREATE OR REPLACE FUNCTION ${definition};\n`)
  }
  const start = () => migrate(db.url, { folder, functions })
  const answers = async (call: string) =>
    (await db.owner.query({ text: `SELECT ${call}`, rowMode: 'array' })).rows
  const identity = async () =>
    (await db.owner.query(`SELECT xmin::text FROM pg_proc WHERE proname = 'answer'`)).rows

  test('are applied at the next start, and only then', async () => {
    await start()
    const first = await identity()
    await start()
    expect(await identity()).toEqual(first)
    write('answer', 'answer() RETURNS int LANGUAGE sql AS $$ SELECT 2 $$')
    await start()
    expect(await answers('answer()')).toEqual([[2]])
  })

  test('a function may call another that is defined after it', async () => {
    write('a_first', 'a_first() RETURNS int LANGUAGE sql AS $$ SELECT z_last() $$')
    write('z_last', 'z_last() RETURNS int LANGUAGE sql AS $$ SELECT 7 $$')
    await start()
    expect(await answers('a_first()')).toEqual([[7]])
  })

  test('a signature that changed stays for one release, then it goes', async () => {
    await start()
    write('answer', 'answer(of_what text) RETURNS int LANGUAGE sql AS $$ SELECT 3 $$')
    await start()
    expect(await answers(`answer(), answer('x')`)).toEqual([[1, 3]])
    write('answer', 'answer(of_what text) RETURNS int LANGUAGE sql AS $$ SELECT 4 $$')
    await start()
    expect(await answers(`answer('x')`)).toEqual([[4]])
    await expect(answers('answer()')).rejects.toThrow('does not exist')
  })

  test('a function that is wrong is named, and none of them is applied', async () => {
    await start()
    write('answer', 'answer() RETURNS int LANGUAGE sql AS $$ SELECT 5 $$')
    write('wrong', 'wrong() RETURNS no_type LANGUAGE sql AS $$ SELECT 1 $$')
    await expect(start()).rejects.toThrow(
      'The functions failed: src/wrong.sql: type "no_type" does not exist',
    )
    expect(await answers('answer()')).toEqual([[1]])
  })

  const mayCall = async () => {
    const { rows } = await db.owner.query<{ role: string; may: boolean }>(
      `SELECT rolname AS role, has_function_privilege(oid, 'answer()', 'EXECUTE') AS may FROM pg_roles
       WHERE rolname IN ('payments_merchant', 'payments_service', 'pg_monitor')`,
    )
    return rows.filter(({ may }) => may).map(({ role }) => role)
  }

  test('only the roles that its file names may call a function, as long as the file names them', async () => {
    const definition = 'answer() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$'
    await start()
    expect(await mayCall()).toEqual([])
    write('answer', definition, '-- Granted to payments_service and payments_merchant.')
    await start()
    expect((await mayCall()).toSorted()).toEqual(['payments_merchant', 'payments_service'])
    write('answer', definition, '-- Granted to payments_merchant.')
    await start()
    expect(await mayCall()).toEqual(['payments_merchant'])
  })

  test('a function that is granted to another role is refused', async () => {
    write('answer', 'answer() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$', '-- Granted to pg_monitor.')
    await expect(start()).rejects.toThrow('src/answer.sql: no function is granted to pg_monitor.')
  })

  test('an older process that starts beside newer ones keeps theirs; alone it applies its own', async () => {
    await start()
    write('answer', 'answer() RETURNS int LANGUAGE sql AS $$ SELECT 6 $$')
    await start()
    write('answer', 'answer() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$')
    const connect = (application_name: string) => openClient({ connectionString: db.url, application_name })
    const [newer, looking] = [await connect('merchant-payments'), await connect('test')]
    const answered = async () => (await looking.query<{ answer: number }>('SELECT answer()')).rows[0]?.answer
    await start()
    expect(await answered()).toBe(6)
    await newer.end()
    await eventually(async () => {
      await start()
      expect(await answered()).toBe(1)
    })
  })
})

test('a database of a version before the first release is refused, and left as it was', async () => {
  const db = await createTestDatabase({ template: 'template0' })
  onTestFinished(() => db.drop())
  await db.owner.query(
    `CREATE TABLE _prisma_migrations (
       migration_name text, checksum text, finished_at timestamptz, rolled_back_at timestamptz);
     INSERT INTO _prisma_migrations VALUES ('0001_init', 'a', now(), NULL)`,
  )
  await expect(migrate(db.url)).rejects.toThrow('start with an empty database')
  const { rows } = await db.owner.query(`SELECT relname FROM pg_class WHERE relkind = 'r'
    AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)`)
  expect(rows).toEqual([{ relname: '_prisma_migrations' }])
})
