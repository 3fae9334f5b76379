import { execFileSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { asRole } from '../../src/database/client.ts'
import { migrateJobs } from '../../src/database/jobs-schema.ts'
import { migrate } from '../../src/database/migrate.ts'
import { ownerRole } from '../../src/database/ownership.ts'
import { openClient } from '../kit/client.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { proveLedger } from '../kit/ledger.ts'
import { balanceOf, fundedMerchant, settleMany } from '../kit/money.ts'
import type { SignedInMerchant } from '../kit/merchants.ts'
import { newHome, startProgram } from '../kit/program.ts'
import { wrongFigures } from '../kit/payment-figures.ts'
import { wrongCounts, wrongHours } from '../kit/transaction-counts.ts'

// The migrations and functions of the last commit with six migrations (eb94758e) are in earlier.tar.gz.

/** A database as that commit made it. */
async function openEarlier(): Promise<TestDatabase> {
  const folder = mkdtempSync(join(tmpdir(), 'merchant-payments-earlier-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  execFileSync('tar', ['-xzf', join(import.meta.dirname, 'earlier.tar.gz')], { cwd: folder })
  const db = await createTestDatabase({ template: 'template0' })
  onTestFinished(() => db.drop())
  const client = await openClient(db.url)
  await client.query(`GRANT ALL ON SCHEMA public TO ${ownerRole};
    GRANT CREATE ON DATABASE ${db.name} TO ${ownerRole}`)
  await migrateJobs(client, asRole(db.url, ownerRole))
  const functions = join(folder, 'src')
  await migrate(db.url, { folder: join(folder, 'prisma/migrations'), functions })
  // Its files had their own statements for the rights.
  const files = globSync('**/*.sql', { cwd: functions }).map((path) =>
    readFileSync(join(functions, path), 'utf8'),
  )
  const rights = files.flatMap((sql) => sql.match(/^(GRANT|REVOKE) EXECUTE ON FUNCTION [^;]+;/gm) ?? [])
  expect(rights.length).toBeGreaterThan(400)
  await client.query(`SET ROLE ${ownerRole}; ${rights.join('')}`)
  return db
}

/** Records two collections of 5,000 by the function of that commit. @returns their ids */
async function collectTwice(pool: pg.Pool, { merchantId, apiKeyId }: SignedInMerchant): Promise<bigint[]> {
  const { rows } = await pool.query<{ id: bigint }>(
    `SELECT transaction_id AS id FROM collect_many(ARRAY[$1, $1]::int[], ARRAY[$2, $2]::int[],
       '{1, 1}', '{OperatorA, OperatorA}', '{+22370000001, +22370000001}', '{5000, 5000}', '{a, b}',
       ARRAY['{}', '{}']::jsonb[], ARRAY[NULL, NULL]::uuid[], ARRAY[NULL, NULL]::text[],
       array_fill(($1, 'api_key:1', NULL, NULL, 'rest', 'createPayment')::audit_recording, ARRAY[2]),
       900000, 30000, 3000, true)`,
    [merchantId, apiKeyId],
  )
  return rows.map(({ id }) => id)
}

/** All that the catalogue says of our objects: columns, constraints, indexes, rights, policies, functions. */
async function catalogueOf(owner: pg.Pool): Promise<string[]> {
  const { rows } = await owner.query<{ line: string }>(
    `WITH ours AS (SELECT * FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname !~ '^_'),
     functions AS (SELECT * FROM pg_proc WHERE pronamespace = 'public'::regnamespace
       AND oid::regprocedure::text NOT IN (SELECT signature FROM _retired_functions))
     SELECT format('column %s.%s %s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
       a.attnotnull, pg_get_expr(d.adbin, d.adrelid)) AS line
     FROM ours c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
     LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
     UNION ALL SELECT format('constraint %s %s', k.conname, pg_get_constraintdef(k.oid))
     FROM pg_constraint k JOIN ours c ON c.oid = k.conrelid
     UNION ALL SELECT format('index %s', pg_get_indexdef(oid)) FROM ours WHERE relkind = 'i'
     UNION ALL SELECT format('table %s %s %s %s %s', relname, relpersistence, relrowsecurity,
       relforcerowsecurity, reloptions) FROM ours
     UNION ALL SELECT format('policy %s', p) FROM pg_policies p WHERE schemaname = 'public'
     UNION ALL SELECT format('trigger %s', pg_get_triggerdef(t.oid))
     FROM pg_trigger t JOIN ours c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal
     UNION ALL SELECT format('function %s', pg_get_functiondef(oid)) FROM functions
     UNION ALL SELECT format('right %s %s %s', c.relname, r.grantee::regrole, r.privilege_type)
     FROM ours c, aclexplode(c.relacl) AS r WHERE r.grantee <> c.relowner
     UNION ALL SELECT format('right %s.%s %s %s', c.relname, a.attname, r.grantee::regrole, r.privilege_type)
     FROM ours c JOIN pg_attribute a ON a.attrelid = c.oid, aclexplode(a.attacl) AS r
     UNION ALL SELECT format('right %s %s', p.oid::regprocedure, r.grantee)
     FROM functions p, aclexplode(p.proacl) AS r
     UNION ALL SELECT format('type %s %s', t.typname, e.enumlabel)
     FROM pg_type t JOIN pg_enum e ON e.enumtypid = t.oid
     ORDER BY 1`,
  )
  return rows.map(({ line }) => line)
}

test('a database of the six migrations is brought over, with its money and its history', async () => {
  const db = await openEarlier()
  const { pool } = db.database
  const shop = await fundedMerchant(pool, 10_000n)
  const [paid = 0n, open = 0n] = await collectTwice(pool, shop)
  await settleMany(pool, [{ id: paid, to: 'success' }])
  // Work that only databases of an older version had, and that is not done.
  await db.owner.query(
    `ALTER TABLE event DISABLE TRIGGER event_guard;
     UPDATE event SET position = NULL;
     DELETE FROM event_log_position;
     ALTER TABLE event ENABLE TRIGGER event_guard;
     INSERT INTO webhook_endpoint (merchant_id, slot, url, events, secret_encrypted)
       SELECT merchant_id, 1, 'https://shop.example/', '{payment_pending}', '' FROM merchant_balance;
     UPDATE transaction_hour_fill SET next_bucket = 0, end_bucket = NULL;
     UPDATE transaction_count_change SET hour = NULL, amount = 0, settled_amount = 0`,
  )
  const before = await balanceOf(pool, shop.merchantId)

  const later = globSync('*/', { cwd: join(import.meta.dirname, '../../prisma/migrations') })
  const applied = later
    .map((name) => name.replace(/\W$/, ''))
    .toSorted()
    .slice(1)
  expect(applied).toContain('0002_payment_items')
  expect(await migrate(db.url)).toEqual({ applied })

  expect(await balanceOf(pool, shop.merchantId)).toEqual(before)
  expect(before).toMatchObject({ available: 15_000n })
  expect(await proveLedger(pool)).toEqual([])
  const wrong = [await wrongCounts(db.owner), await wrongHours(db.owner), await wrongFigures(db.owner)]
  expect(wrong).toEqual([[], [], []])
  const { rows } = await db.owner.query(
    `SELECT (SELECT array_agg(position::int ORDER BY id) FROM event) AS positions,
       (SELECT array_agg(delivered_to::int) FROM webhook_endpoint) AS delivered,
       (SELECT status FROM transaction WHERE id = $1) AS status`,
    [open],
  )
  expect(rows).toEqual([{ positions: [1, 2, 3], delivered: [3], status: 'pending' }])
  const fresh = await createTestDatabase()
  onTestFinished(() => fresh.drop())
  const [brought, made] = [await catalogueOf(db.owner), await catalogueOf(fresh.owner)]
  expect(made.length).toBeGreaterThan(1_000)
  expect(brought.filter((line) => !made.includes(line))).toEqual([])
  expect(made.filter((line) => !brought.includes(line))).toEqual([])

  const home = await newHome({ DATABASE_URL: db.url })
  const service = await startProgram(home)
  expect(service.errors()).not.toMatch(/"level":[456]0/)
  expect((await fetch(`${home.url}/readyz`)).status).toBe(200)
  expect(await service.end('SIGTERM')).toBe(0)
  await home.remove()
  expect(await balanceOf(pool, shop.merchantId)).toMatchObject({ available: 15_000n })
})

test('a database that has only some of them is refused, and left as it was', async () => {
  const db = await openEarlier()
  await db.owner.query(`DELETE FROM _prisma_migrations WHERE migration_name = '0007_transaction_hours'`)
  const before = await catalogueOf(db.owner)
  await expect(migrate(db.url)).rejects.toThrow('start with an empty database')
  expect(await catalogueOf(db.owner)).toEqual(before)
})
