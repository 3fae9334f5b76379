import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'

let base: TestDatabase
beforeAll(async () => {
  base = await createTestDatabase()
})
afterAll(() => base.drop())

interface Key {
  table: string
  columns: string[]
  index: string
}

/** Every foreign key: the table it points at, the columns it looks for, the index that identifies them. */
async function readKeys(): Promise<Key[]> {
  const { rows } = await base.owner.query<Key>(
    `SELECT DISTINCT c.confrelid::regclass::text AS table, c.conindid::regclass::text AS index,
       ARRAY(
         SELECT a.attname::text FROM unnest(c.confkey) AS k
         JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k
       ) AS columns
     FROM pg_constraint c WHERE c.contype = 'f' ORDER BY 1, 2`,
  )
  return rows
}

/** How the check of a key finds its row, in the service's own session. */
async function planOf({ table, columns }: Key): Promise<string> {
  const where = columns.map((column, place) => `${column} = $${place + 1}`).join(' AND ')
  const { rows } = await base.database.pool.query<Record<string, string>>(
    `EXPLAIN (GENERIC_PLAN) SELECT 1 FROM ONLY ${table} x WHERE ${where}`,
  )
  return rows.map((row) => row['QUERY PLAN']).join('\n')
}

/** The keys that are not found by their index alone. */
async function readStrays(): Promise<string[]> {
  const keys = await readKeys()
  const plans = await Promise.all(keys.map(planOf))
  return plans.filter((plan, place) => plan.includes('Filter') || !plan.includes(keys[place]?.index ?? ''))
}

test('each foreign key is found by its own index before anything was analysed', async () => {
  expect((await readKeys()).map(({ index }) => index)).toContain('transaction_merchant_id_id_key')
  expect(await readStrays()).toEqual([])
})

test('each foreign key is found by its own index when tables were analysed nearly empty', async () => {
  await base.owner.query("INSERT INTO merchant (name) VALUES ('Shop')")
  await base.owner.query('ANALYZE')
  expect(await readStrays()).toEqual([])
})
