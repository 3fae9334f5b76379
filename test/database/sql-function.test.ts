import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  compositeType,
  type Declared,
  declaredFunctions,
  sqlFunction,
  sqlFunctionOfMany,
  sqlType,
  type TypedSql,
} from '../../src/database/sql-function.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase()
})
afterAll(() => db.drop())

interface Catalogued {
  args: string[]
  result: string | null
  columns: string[] | null
}

/** Functions and composite types of the catalogue: arguments, fields and columns as `name type`. */
async function readCatalogue(): Promise<Map<string, Catalogued[]>> {
  const { rows } = await db.owner.query<Catalogued & { name: string }>(
    `SELECT p.proname AS name, arguments.given AS args,
       CASE WHEN p.prorettype <> 'void'::regtype THEN format_type(p.prorettype, NULL) END AS result,
       CASE WHEN p.prorettype = 'record'::regtype THEN arguments.got
         WHEN t.typrelid <> 0 THEN ARRAY(
           SELECT a.attname || ' ' || format_type(a.atttypid, NULL) FROM pg_attribute a
           WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum)
         WHEN p.proargmodes && '{o,t}'::"char"[] THEN arguments.got END AS columns
     FROM pg_proc p JOIN pg_type t ON t.oid = p.prorettype
     CROSS JOIN LATERAL (
       SELECT coalesce(array_agg(told ORDER BY ordinal) FILTER (WHERE mode = 'i'), '{}') AS given,
         coalesce(array_agg(told ORDER BY ordinal) FILTER (WHERE mode <> 'i'), '{}') AS got
       FROM (
         SELECT a.ordinal, coalesce(a.mode, 'i') AS mode, a.name || ' ' || format_type(a.type, NULL) AS told
         FROM unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargnames, p.proargmodes)
           WITH ORDINALITY AS a (type, name, mode, ordinal)
       ) AS argument
     ) AS arguments
     WHERE p.pronamespace = 'public'::regnamespace
     UNION ALL
     SELECT c.relname, array_agg(a.attname || ' ' || format_type(a.atttypid, NULL) ORDER BY a.attnum),
       NULL, NULL
     FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
     WHERE c.relkind = 'c' AND c.relnamespace = 'public'::regnamespace GROUP BY c.relname`,
  )
  return Map.groupBy(rows, ({ name }) => name)
}

/** As `format_type` prints them. */
const longNames: Record<string, string> = { int: 'integer', timestamptz: 'timestamp with time zone' }

function long(type: string): string {
  return type.replace(/^\w+/, (name) => longNames[name] ?? name)
}

/** Lists the differences between a declaration and the catalogue. */
function differences(catalogue: Map<string, Catalogued[]>, { name, takes, gives }: Declared): string[] {
  const found = catalogue.get(name) ?? []
  const [one] = found
  if (!one || found.length > 1) return [`${name}: the catalogue has ${found.length} functions of this name`]
  const told = (table: Exclude<Declared['gives'], string | null>) =>
    table.map((column) => `${column.name} ${long(column.type)}`)
  const compare = (what: string, said: readonly string[], has: readonly string[]) => [
    ...said.filter((word) => !has.includes(word)).map((word) => `${name}: has no ${what} "${word}"`),
    ...has.filter((word) => !said.includes(word)).map((word) => `${name}: leaves out the ${what} "${word}"`),
  ]
  const result = Array.isArray(gives)
    ? compare('column', told(gives), one.columns ?? [])
    : compare('result', gives === null ? [] : [long(gives as string)], one.result ? [one.result] : [])
  const fields = takes.flatMap((argument) =>
    argument.fields
      ? compare(
          `field of ${argument.name}`,
          told(argument.fields),
          catalogue.get(argument.type.replace('[]', ''))?.[0]?.args ?? [],
        )
      : [],
  )
  return [...compare('argument', told(takes), one.args), ...fields, ...result]
}

/** All modules that declare functions. */
async function loadDeclarations(): Promise<void> {
  const root = join(import.meta.dirname, '../../src')
  const declares = (path: string) => /\bsqlFunction(OfMany)?\(/.test(readFileSync(join(root, path), 'utf8'))
  for (const path of globSync('**/*.ts', { cwd: root })) {
    if (declares(path)) await import(join(root, path))
  }
}

describe('declarations', () => {
  let catalogue: Map<string, Catalogued[]>
  const declared: Declared[] = []
  beforeAll(async () => {
    catalogue = await readCatalogue()
    await loadDeclarations()
    declared.push(...declaredFunctions())
  })

  test('each declaration agrees with the catalogue, and each function is declared once', () => {
    expect(declared.length).toBeGreaterThan(2)
    expect(declared.flatMap((one) => differences(catalogue, one))).toEqual([])
    const names = declared.map(({ name }) => name)
    expect(names.filter((name, ordinal) => names.indexOf(name) < ordinal)).toEqual([])
  })

  test.each<[string, Declared]>([
    ['fund_merchant: leaves out the argument "origin text"', declaration({ origin: undefined })],
    ['fund_merchant: has no argument "note text"', declaration({ note: 'text' })],
    ['fund_merchant: has no argument "amount integer"', declaration({ amount: 'int' })],
    ['fund_merchant: has no result "integer"', { ...declaration({}), gives: 'int' }],
    [
      'fund_merchant: has no column "done boolean"',
      { ...declaration({}), gives: [{ name: 'done', type: 'boolean' }] },
    ],
    ['no_function: the catalogue has 0 functions of this name', { ...declaration({}), name: 'no_function' }],
  ])('says %s', (complaint, wrong) => {
    expect(differences(catalogue, declaration({}))).toEqual([])
    expect(differences(catalogue, wrong)).toContain(complaint)
  })
})

/** The declaration of `fund_merchant`, with changes. */
function declaration(more: Record<string, string | undefined>): Declared {
  const takes = { merchant: 'int', origin: 'text', amount: 'bigint', ...more }
  return {
    name: 'fund_merchant',
    takes: Object.entries(takes).flatMap(([name, type]) => (type === undefined ? [] : [{ name, type }])),
    gives: 'boolean',
  }
}

describe('a call', () => {
  /** Defines a function of this test. */
  async function define(definition: string): Promise<void> {
    const [name] = /^\w+/.exec(definition) ?? []
    await db.owner.query(`CREATE FUNCTION ${definition}`)
    onTestFinished(async () => void (await db.owner.query(`DROP FUNCTION ${name}`)))
  }

  test('gives one value, and takes each type', async () => {
    await define(`told(a int, b bigint, c text, at timestamptz, numbers int[], what jsonb, bytes bytea)
      RETURNS jsonb LANGUAGE sql AS $$ SELECT jsonb_build_object('a', a, 'b', b, 'c', c, 'at', at,
        'numbers', numbers, 'what', what, 'bytes', encode(bytes, 'hex')) $$`)
    const told = sqlFunction('told', {
      takes: {
        a: 'int',
        b: 'bigint',
        c: 'text?',
        at: 'timestamptz',
        numbers: 'int[]',
        what: 'jsonb',
        bytes: 'bytea',
      },
      gives: sqlType<Record<string, unknown>>('jsonb'),
    })
    const given = { a: 1, b: 2n ** 53n, numbers: [1, 2], what: ['x', null], bytes: Buffer.from('ab') }
    expect(await told(db.owner, { ...given, c: null, at: new Date(0) })).toEqual({
      ...given,
      b: Number(given.b),
      c: null,
      at: '1970-01-01T00:00:00+00:00',
      bytes: '6162',
    })
  })

  test('gives no row', async () => {
    await define(`nothing() RETURNS void LANGUAGE sql AS $$ SELECT $$`)
    const nothing = sqlFunction('nothing', { takes: {}, gives: 'void' })
    expect(await nothing(db.owner, {})).toBeUndefined()
  })

  test('gives rows under the names of TypeScript, for any order of the arguments', async () => {
    await define(`pairs(up_to int, starting_at bigint) RETURNS TABLE (some_number bigint, if_odd text)
      LANGUAGE sql AS $$ SELECT n, CASE WHEN n % 2 = 1 THEN 'odd' END
        FROM generate_series(starting_at, up_to) AS n $$`)
    const pairs = sqlFunction('pairs', {
      takes: { startingAt: 'bigint', upTo: 'int' },
      gives: { ifOdd: 'text?', someNumber: 'bigint' },
    })
    expect(await pairs(db.owner, { upTo: 3, startingAt: 2 })).toEqual([
      { someNumber: 2n, ifOdd: null },
      { someNumber: 3n, ifOdd: 'odd' },
    ])
  })

  test('a call takes items as one array of a composite type, with every kind of text', async () => {
    await db.owner.query(`CREATE TYPE said AS (word text, times int);
      CREATE TYPE saying AS (said said, note jsonb, at timestamptz, amount bigint)`)
    onTestFinished(async () => void (await db.owner.query('DROP TYPE saying, said')))
    await define(`sayings(items saying[], before text) RETURNS TABLE (told jsonb) LANGUAGE sql AS $$
      SELECT jsonb_build_array(before, (i.said).word, (i.said).times, i.note, i.at, i.amount)
      FROM unnest(items) WITH ORDINALITY AS i ORDER BY i.ordinality $$`)
    type Said = { word: string | null; times: number }
    const said: TypedSql<Said | null> = compositeType<Said>('said', { word: 'text?', times: 'int' })
    const sayings = sqlFunctionOfMany('sayings', {
      as: 'saying',
      each: { said, note: 'jsonb', at: 'timestamptz', amount: 'bigint?' },
      takes: { before: 'text' },
      gives: { told: sqlType<unknown[]>('jsonb') },
    })
    const words = ['', 'a "b", \\c)', '{(NULL)}', "'; -- é", 'NULL', '\n\t', null]
    const at = new Date('2026-01-02T03:04:05.678Z')
    const printed = '2026-01-02T03:04:05.678+00:00'
    const items = words.map((word, times) => ({ said: { word, times }, note: { word }, at, amount: 5n }))
    const rows = await sayings(db.owner, [...items, { said: null, note: null, at, amount: null }], {
      before: '-',
    })
    expect(rows.map(({ told }) => told)).toEqual([
      ...words.map((word, times) => ['-', word, times, { word }, printed, 5]),
      ['-', null, null, null, printed, null],
    ])
    expect(await sayings(db.owner, [], { before: '-' })).toEqual([])
  })

  test('serves many items, with the arguments that all of them share', async () => {
    await db.owner.query('CREATE TYPE said AS (word text, by_whom uuid, place int)')
    onTestFinished(async () => void (await db.owner.query('DROP TYPE said')))
    await define(`many(identities uuid[], refs text[], notes jsonb[], saids said[], times int)
      RETURNS TABLE (ordinal int, told text) LANGUAGE sql AS $$
      SELECT i.ordinal::int,
        repeat(concat_ws(' ', i.identity, i.ref, i.note, i.word, i.by_whom, i.number), times)
      FROM unnest(identities, refs, notes, saids)
        WITH ORDINALITY AS i (identity, ref, note, word, by_whom, number, ordinal) ORDER BY i.ordinal $$`)
    const said = compositeType<{ word: string | null; byWhom: string | null; ordinal: number }>('said', {
      word: 'text?',
      byWhom: 'uuid?',
      ordinal: 'int',
    })
    const many = sqlFunctionOfMany('many', {
      each: { identity: 'uuid', reference: 'text?', note: 'jsonb', said },
      takes: { times: 'int' },
      gives: { ordinal: 'int', told: 'text' },
    })
    const identity = '00000000-0000-4000-8000-000000000001'
    const items = [
      {
        identity,
        reference: null,
        note: { a: '"' },
        said: { word: 'a "b", \\c)', byWhom: null, ordinal: 7 },
      },
      { identity, reference: 'r', note: null, said: { word: null, byWhom: identity, ordinal: 8 } },
    ]
    expect(await many(db.owner, items, { times: 1 })).toEqual([
      { ordinal: 1, told: `${identity} {"a": "\\""} a "b", \\c) 7` },
      { ordinal: 2, told: `${identity} r ${identity} 8` },
    ])
    expect(await many(db.owner, [], { times: 1 })).toEqual([])
  })
})
