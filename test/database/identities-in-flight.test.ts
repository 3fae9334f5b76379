import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { migrateJobs } from '../../src/database/jobs-schema.ts'
import { migrate } from '../../src/database/migrate.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { eventually } from '../spec/eventually.ts'

// An upgrade beside a node of the previous release, which has a call under way: that goes on as it began.

const all = join(import.meta.dirname, '../../prisma/migrations')

/** The migrations of the previous release. */
function migrationsBefore(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'migrations-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const one of readdirSync(all).filter((each) => each < name))
    cpSync(join(all, one), join(folder, one), { recursive: true })
  return folder
}

async function toPreviousRelease({ url, owner }: TestDatabase): Promise<void> {
  const session = await owner.connect()
  await migrateJobs(session, url)
  session.release()
  await migrate(url, { folder: migrationsBefore('0050') })
}

/** A merchant with a key, as the previous release has it. */
async function openShop({ owner }: TestDatabase): Promise<number[]> {
  const { rows } = await owner.query<{ merchant: number; key: number }>(
    `WITH m AS (INSERT INTO merchant (name) VALUES ('Shop') RETURNING id)
     INSERT INTO api_key (merchant_id, name, key, secret_hash, pepper_id, scopes)
     SELECT id, 'Till', 'mk_test', '\\x00'::bytea, 1, '{pay}' FROM m
     RETURNING merchant_id AS merchant, id AS key`,
  )
  return [rows[0]?.merchant ?? 0, rows[0]?.key ?? 0]
}

test('a call that the migration overtakes keeps the identity that its operator was asked under', async () => {
  const db = await createTestDatabase({ template: 'template0' })
  onTestFinished(() => db.drop())
  await toPreviousRelease(db)
  const [merchant, key] = await openShop(db)
  // The call waits as for a change of the access to the account, in the middle of its function.
  const access = await db.owner.connect()
  await access.query('BEGIN')
  await access.query('SELECT pg_advisory_xact_lock(72707373, $1)', [merchant])
  const call = db.owner.query<{ request: string; transaction: string }>(
    `SELECT request_id AS request, transaction_id AS transaction
     FROM collect_many(ARRAY[$1::int], ARRAY[$2::int], ARRAY[1], ARRAY['OperatorA'::provider],
       ARRAY['+22370000001'], ARRAY[5000::bigint], ARRAY['order'], ARRAY['{}'::jsonb],
       86400000, 30000, 1000)`,
    [merchant, key],
  )
  await db.untilWaiting()
  const upgraded = migrate(db.url, { folder: all })
  await eventually(async () => {
    const { rowCount } = await db.owner.query(
      `SELECT FROM _prisma_migrations WHERE migration_name LIKE '0062%' AND finished_at IS NOT NULL`,
    )
    expect(rowCount).toBe(1)
  }, 60_000)
  await access.query('ROLLBACK')
  access.release()
  await Promise.all([call, upgraded])
  const { rows } = await db.owner.query(
    `SELECT t.correlation_id = r.correlation_id AS same FROM transaction t
     JOIN operator_request r ON r.transaction_id = t.id`,
  )
  expect(rows).toEqual([{ same: true }])
  const forced = 'UPDATE transaction SET correlation_id = gen_random_uuid()'
  await expect(db.owner.query(forced)).rejects.toMatchObject({ code: '23000' })
})
