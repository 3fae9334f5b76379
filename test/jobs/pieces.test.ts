import { createSecretKey, randomBytes } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import type { Services } from '../../src/context.ts'
import { openPieces } from '../../src/database/pieces.ts'
import { startAnnouncer } from '../../src/events/announcer.ts'
import { startJobs } from '../../src/jobs/schedule.ts'
import { serviceJobs } from '../../src/resources/jobs.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { useTestDatabase } from '../kit/database.ts'
import { eventually } from '../kit/eventually.ts'
import { makeMerchant } from '../kit/merchants.ts'

// Background work that runs into the time limit of its statements takes smaller pieces until it gets through.

const db = await useTestDatabase()
const log = createLog('silent')
const { merchantId } = await makeMerchant(db.database.pool)

await db.owner.query(
  `INSERT INTO webhook_endpoint (merchant_id, slot, url, events, secret_encrypted, delivered_to)
   VALUES ($1, 1, 'https://shop.example/', '{payment_pending}', '', 0)`,
  [merchantId],
)

/** A process on a slow machine: its statements may take 200 ms, and each row of a backlog takes 4 ms. */
const slow = db.secondProcess()
slow.pool.options.statement_timeout = 200
await db.owner.query(
  `CREATE FUNCTION take_long() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN PERFORM pg_sleep(0.004); RETURN coalesce(NEW, OLD); END $$`,
)

const started: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of started.splice(0)) await each.close()
})

/** The work, the backlog of 200 rows that the test makes, and what counts the rest of it. */
const backlogs: [job: string, slowBy: string, fill: string, rest: string][] = [
  [
    'transactions.count',
    'DELETE ON transaction_count_change',
    `INSERT INTO transaction_count_change
       (merchant_id, bucket, transaction_type, payment_method, status, hour, n)
     SELECT ${merchantId}, n, 'pay', 'OperatorA', 'success', date_trunc('hour', now()), 1
     FROM generate_series(1, 200) AS n`,
    'FROM transaction_count_change',
  ],
  [
    'audit-log.chain',
    'INSERT ON audit_link',
    `WITH entry AS (
       INSERT INTO audit_entry (merchant_id, actor, operation, target, channel)
       SELECT ${merchantId}, 'platform', 'test', 'merchant:1', 'terminal' FROM generate_series(1, 200)
       RETURNING merchant_id, id)
     INSERT INTO audit_unchained SELECT merchant_id, id FROM entry`,
    'FROM audit_unchained',
  ],
  [
    'announcer',
    'INSERT ON webhook_delivery',
    `SELECT append_events(array_agg((${merchantId}, 'payment_pending', '{}'::jsonb)::new_event), now())
     FROM generate_series(1, 200)`,
    `FROM webhook_endpoint w JOIN event_log_position h USING (merchant_id)
     WHERE w.delivered_to IS DISTINCT FROM h.position`,
  ],
  [
    'idempotency-keys.sweep',
    'DELETE ON idempotency_key',
    `INSERT INTO idempotency_key (merchant_id, operation, key, digest, operation_id, created_at)
     SELECT ${merchantId}, 'pay', n::text, decode(repeat('00', 32), 'hex'), decode(repeat('00', 16), 'hex'),
       now() - interval '60 days' FROM generate_series(1, 200) AS n`,
    'FROM idempotency_key',
  ],
  [
    'people.sweep',
    'DELETE ON sign_in_wait',
    `INSERT INTO sign_in_wait (name, failures, until)
     SELECT n::text, 1, now() - interval '2 days' FROM generate_series(1, 200) AS n`,
    'FROM sign_in_wait',
  ],
  [
    'rate-limits.sweep',
    'DELETE ON rate_limit',
    `INSERT INTO rate_limit
     SELECT 'old:' || n, ARRAY[now() - interval '1 day'] FROM generate_series(1, 200) AS n`,
    'FROM rate_limit',
  ],
  [
    'rate-limits.sweep',
    'DELETE ON link_slot',
    `INSERT INTO link_slot (transaction_id, merchant_id, payment_link_id, address, created_at)
     SELECT n, ${merchantId}, 1, 'a', now() - interval '1 day' FROM generate_series(1, 200) AS n`,
    'FROM link_slot',
  ],
]

test.each(backlogs)('%s gets through a backlog where %s takes long', async (name, slowBy, fill, rest) => {
  await db.owner.query(fill)
  await db.owner.query(
    `CREATE OR REPLACE TRIGGER takes_long BEFORE ${slowBy} FOR EACH ROW EXECUTE FUNCTION take_long()`,
  )
  started.push(startWork(name))
  const left = async () => (await db.owner.query(`SELECT ${rest} LIMIT 1`)).rowCount
  await eventually(async () => expect(await left()).toBe(0))
})

/** Starts the work as the service does. */
function startWork(name: string): { close(): Promise<void> } {
  if (name === 'announcer') return startAnnouncer(slow.pool, log)
  const access = { master: { auditKey: createSecretKey(randomBytes(32)) } }
  const played = { database: slow, access, log, operators: { list: () => [] } }
  const jobs = serviceJobs(played as unknown as Services).filter((job) => job.name === name)
  expect(jobs).toHaveLength(1)
  return startJobs(jobs, log)
}

test('a piece of one row that takes too long is an error of the work', async () => {
  const runPiece = openPieces({ max: 3 })
  const sizes: number[] = []
  const run = () =>
    runPiece(async (rows) => {
      sizes.push(rows)
      await slow.pool.query('SELECT pg_sleep(1)')
    })
  await expect(run()).rejects.toMatchObject({ name: 'PieceTooLong', cause: { code: '57014' } })
  await expect(run()).rejects.toMatchObject({ name: 'PieceTooLong' })
  await expect(run()).rejects.toMatchObject({ code: '57014' })
  expect(sizes).toEqual([3, 2, 1])
})

test('a lock that is not free in time makes the next piece smaller, another error does not', async () => {
  const size = { rows: 8 }
  const runPiece = openPieces({ max: 8 }, size)
  const failing = (code: string) =>
    runPiece(() => db.owner.query(`DO $$ BEGIN RAISE 'no' USING ERRCODE = '${code}'; END $$`))
  await expect(failing('55P03')).rejects.toMatchObject({ name: 'PieceTooLong' })
  expect(size.rows).toBe(4)
  await expect(failing('23505')).rejects.toMatchObject({ code: '23505' })
  expect(size.rows).toBe(4)
})

test('a fast piece doubles the next one, up to the first size', async () => {
  const size = { rows: 2 }
  const runPiece = openPieces({ max: 6 }, size)
  for (const rows of [4, 6, 6]) {
    await runPiece(async () => {})
    expect(size.rows).toBe(rows)
  }
})
