import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { createTestDatabase } from '../kit/database.ts'
import { sqlOfSchema } from '../kit/prisma-sql.ts'

const prismaDir = join(import.meta.dirname, '../../prisma')
const schema = readFileSync(join(prismaDir, 'schema.prisma'), 'utf8')

// The test compares the parts of the schema that schema.prisma can express. It cannot express checks, partial
// indexes, functions, triggers, grants and storage settings.
const catalog = {
  columns: `
    select c.relname || '.' || a.attname as name, format_type(a.atttypid, a.atttypmod) as type,
           a.attnotnull as required, a.attidentity::text as identity,
           pg_get_expr(d.adbin, d.adrelid) as default
    from pg_class c join pg_attribute a on a.attrelid = c.oid
         left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
      and c.relnamespace = 'public'::regnamespace and c.relname !~ '^_'`,
  constraints: `
    select c.relname || '.' || k.conname as name, pg_get_constraintdef(k.oid) as definition
    from pg_constraint k join pg_class c on c.oid = k.conrelid
    where k.contype in ('p', 'u', 'f')
      and c.relnamespace = 'public'::regnamespace and c.relname !~ '^_'`,
  indexes: `
    select c.relname || '.' || i.relname as name, pg_get_indexdef(i.oid) as definition
    from pg_index x join pg_class c on c.oid = x.indrelid join pg_class i on i.oid = x.indexrelid
    where x.indpred is null and x.indexprs is null
      and c.relnamespace = 'public'::regnamespace and c.relname !~ '^_'`,
  enums: `
    select t.typname as name, array_agg(e.enumlabel::text order by e.enumsortorder) as labels
    from pg_enum e join pg_type t on t.oid = e.enumtypid
    where t.typnamespace = 'public'::regnamespace group by t.typname`,
}

async function readCatalog(owner: pg.Pool): Promise<Record<string, unknown>> {
  const parts: Record<string, unknown> = {}
  for (const [part, sql] of Object.entries(catalog)) {
    const { rows } = await owner.query<{ name: string }>(`${sql} order by 1`)
    for (const { name, ...rest } of rows) parts[`${part} ${name}`] = rest
  }
  return parts
}

test('the migrations make the tables that schema.prisma describes', async () => {
  const migrated = await createTestDatabase()
  onTestFinished(() => migrated.drop())
  const described = await createTestDatabase({ template: 'template0' })
  onTestFinished(() => described.drop())
  await described.owner.query(await sqlOfSchema(schema))

  const expected = await readCatalog(described.owner)
  expect(Object.keys(expected).length).toBeGreaterThan(20)
  expect(await readCatalog(migrated.owner)).toEqual(expected)
})
