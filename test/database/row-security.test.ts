import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withClient } from '../kit/client.ts'
import type { SignedInMerchant } from '../kit/merchants.ts'
import { collectMany, fundedMerchant, item, openCollection, settleMany } from '../kit/money.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'

let db: TestDatabase
let pool: pg.Pool
let merchant: SignedInMerchant
let paid: bigint

beforeAll(async () => {
  db = await createTestDatabase()
  pool = db.database.pool
  merchant = await fundedMerchant(pool, 10_000n)
  const { transactionId, requestId } = await openCollection(pool, merchant)
  paid = transactionId
  await settleMany(pool, [{ id: paid, to: 'success' }])
  await db.owner.query(
    `INSERT INTO operator_exchange (merchant_id, request_id, operation, method, path, request_body,
       response_body, duration_ms, at) VALUES ($1, $2, 'collect', 'POST', '/', '', '', 1, now())`,
    [merchant.merchantId, requestId],
  )
  await db.owner.query(
    `INSERT INTO operator_callback (provider, dedupe_key, body) VALUES ('OperatorA', 'kept', '{}')`,
  )
  await db.owner.query('SELECT make_missing_deliveries(100)')
})
afterAll(() => db.drop())

const denied = { code: '42501' }
const guarded = { code: '23000' }

describe("the service's role", () => {
  test.each([
    `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
     VALUES (1, 'x', 'fund', 'funding', 'available', 1, now())`,
    'UPDATE ledger_entry SET amount = 1',
    'DELETE FROM ledger_entry',
    'TRUNCATE ledger_entry',
    `INSERT INTO event (merchant_id, position, type, data, created_at) VALUES (1, 9, 'x', '{}', now())`,
    'UPDATE event SET position = 1',
    'DELETE FROM event',
    'TRUNCATE event',
    'INSERT INTO merchant_balance (merchant_id) VALUES (999)',
    'UPDATE merchant_balance SET available = 1000000',
    'DELETE FROM merchant_balance',
    'UPDATE balance_snapshot SET available = 1000000',
    'DELETE FROM balance_snapshot',
    'INSERT INTO event_log_position VALUES (1, 1)',
    'UPDATE event_log_position SET position = 0',
    'UPDATE operator_exchange SET status = 200',
    'DELETE FROM operator_exchange',
    `UPDATE operator_callback SET body = ''`,
    'DELETE FROM operator_callback',
    `UPDATE transaction SET status = 'success', settled_amount = 1`,
    'UPDATE transaction SET amount = 1',
    'UPDATE transaction SET late = true',
    'DELETE FROM transaction',
    'DELETE FROM operator_request',
    `UPDATE payout SET status = 'completed', settled_amount = 1`,
    'DELETE FROM payout',
    'UPDATE payout_count SET n = 0',
    `UPDATE beneficiary SET account = '+22370000009'`,
    `UPDATE audit_entry SET actor = 'x'`,
    'DELETE FROM audit_entry',
    `INSERT INTO audit_link VALUES (1, 1, 1, '')`,
    'DELETE FROM audit_unchained',
    'UPDATE audit_head SET position = 1',
    'UPDATE webhook_endpoint SET failure_count = 0',
    `UPDATE webhook_delivery SET status = 'delivered'`,
    'DELETE FROM webhook_attempt',
    'DELETE FROM merchant',
    'DELETE FROM api_key',
    'UPDATE api_key SET suspended_at = NULL',
    `UPDATE member_secret SET password_hash = 'x'`,
    `UPDATE session SET expires_at = now() + interval '1 day'`,
    `UPDATE team_member SET role = 'owner'`,
    'DELETE FROM rate_limit',
    'DELETE FROM sign_in_wait',
    `INSERT INTO lifecycle_move VALUES ('transaction', 'success', 'failed')`,
    'DELETE FROM lifecycle_move',
    'ALTER TABLE ledger_entry DISABLE TRIGGER ALL',
    'DROP TABLE ledger_entry',
    'CREATE TABLE mine (id int)',
    'CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$',
    'SELECT apply_ledger_entries()',
    'SELECT open_balance()',
    'SET session_replication_role = replica',
  ])('may not: %s', async (statement) => {
    await expect(pool.query(statement)).rejects.toMatchObject({
      code: expect.stringMatching(/^42501|^0A000/),
    })
  })

  test('owns no relation and no function', async () => {
    const { rows } = await db.owner.query(
      `SELECT relname FROM pg_class WHERE relowner = 'payments_service'::regrole
       UNION ALL SELECT proname FROM pg_proc WHERE proowner = 'payments_service'::regrole`,
    )
    expect(rows).toEqual([])
  })

  test('may write these tables and columns, and no other', async () => {
    const { rows } = await db.owner.query<{ may: string }>(
      `SELECT table_name || ': ' || privilege_type AS may FROM information_schema.table_privileges
       WHERE grantee = 'payments_service' AND privilege_type NOT IN ('SELECT')
       UNION SELECT table_name || '.' || column_name || ': UPDATE' FROM information_schema.column_privileges c
       WHERE grantee = 'payments_service' AND privilege_type = 'UPDATE' AND NOT EXISTS (
         SELECT FROM information_schema.table_privileges t
         WHERE t.grantee = c.grantee AND t.table_name = c.table_name AND t.privilege_type = 'UPDATE')
       ORDER BY may`,
    )
    const jobs = ['job_queues', 'jobs', 'known_crontabs', 'tasks'].flatMap((name) =>
      ['DELETE', 'INSERT', 'UPDATE'].map((right) => `_private_${name}: ${right}`),
    )
    const may = [
      ...jobs,
      'audit_unchained: INSERT',
      'database_epoch.keys_handled_at: UPDATE',
      'merchant.deactivated_at: UPDATE',
      'merchant.ip_whitelist: UPDATE',
      'merchant.locale: UPDATE',
      'merchant.name: UPDATE',
      'merchant.notification_email: UPDATE',
      'merchant.status: UPDATE',
      'merchant: INSERT',
      'operator_orphan.resolution: UPDATE',
      'operator_orphan.resolved_at: UPDATE',
      'operator_orphan: INSERT',
      'operator_request: UPDATE',
      'rate_limit_window: DELETE',
      'rate_limit_window: INSERT',
      'rate_limit_window: UPDATE',
      'sandbox_clock: INSERT',
      'sandbox_clock: UPDATE',
      'transaction.payment_url: UPDATE',
    ]
    expect(rows.map((row) => row.may)).toEqual(may)
  })
})

describe('a temporary table of the service stands in for none of ours', () => {
  async function inSession(
    statements: string,
    work: (client: pg.PoolClient) => Promise<void>,
  ): Promise<void> {
    await withClient(pool, async (client) => {
      await client.query(`BEGIN; ${statements}`)
      await work(client)
    })
  }

  test('neither a lifecycle of its own', () =>
    inSession(
      `CREATE TEMP TABLE lifecycle_move AS SELECT 'transaction' AS lifecycle, 'success' AS from_status,
         'failed' AS to_status; GRANT SELECT ON lifecycle_move TO PUBLIC`,
      async (client) => {
        expect(await settleMany(client, [{ id: paid, to: 'failed' }])).toMatchObject([
          { moved: false, status: 'success' },
        ])
      },
    ))

  test('nor a list of keys of its own', () =>
    inSession(
      `CREATE TEMP TABLE credential AS SELECT 424242 AS id, ${merchant.merchantId} AS merchant_id,
         1 AS version, NULL::timestamptz AS revoked_at; GRANT SELECT ON credential TO PUBLIC`,
      async (client) => {
        expect(await collectMany(client, [item(merchant, { apiKeyId: 424_242 })])).toMatchObject([
          { outcome: 'unauthenticated' },
        ])
      },
    ))

  test('every function with the rights of the owner looks there last', async () => {
    const { rows } = await db.owner.query<{ proname: string; proconfig: string[] | null }>(
      `SELECT proname, proconfig FROM pg_proc
       WHERE pronamespace = 'public'::regnamespace AND prosecdef ORDER BY proname`,
    )
    expect(rows.length).toBeGreaterThan(6)
    for (const row of rows) expect(row.proconfig).toContain('search_path=public, pg_temp')
  })
})

describe('the owner too', () => {
  test.each([
    'UPDATE ledger_entry SET amount = 1',
    'DELETE FROM ledger_entry',
    'TRUNCATE ledger_entry',
    'UPDATE operator_exchange SET status = 200',
    'DELETE FROM operator_exchange',
    `UPDATE operator_callback SET body = ''`,
    'DELETE FROM operator_callback',
    'UPDATE event SET position = position + 1',
    'UPDATE event SET position = NULL',
    `UPDATE event SET data = '{}'`,
    'DELETE FROM event',
    'TRUNCATE event CASCADE',
    'DELETE FROM payout',
    'TRUNCATE payout CASCADE',
  ])('may not rewrite history: %s', async (statement) => {
    await expect(db.owner.query(statement)).rejects.toMatchObject(guarded)
  })

  test.each([
    ['merchant_balance_available', 'UPDATE merchant_balance SET available = -1'],
    ['merchant_balance_reserved', 'UPDATE merchant_balance SET reserved = -1'],
    ['merchant_balance_receivable', 'UPDATE merchant_balance SET receivable = -1'],
    ['merchant_approval_threshold', 'UPDATE merchant SET approval_threshold = -1'],
    ['operator_request_subject', 'UPDATE operator_request SET payout_id = 1'],
    ['operator_request_subject', 'UPDATE operator_request SET transaction_id = NULL'],
    ['merchant_name_length', `INSERT INTO merchant (name) VALUES ('')`],
    ['operator_request_amount', 'UPDATE operator_request SET amount = 0'],
    ['operator_request_attempt', 'UPDATE operator_request SET attempt = 0'],
    ['sandbox_clock_single', 'INSERT INTO sandbox_clock VALUES (false, 0)'],
    [
      'ledger_entry_amount',
      `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
       VALUES (1, 'x', 'fund', 'funding', 'available', 0, now())`,
    ],
    [
      'ledger_entry_sides',
      `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
       VALUES (1, 'x', 'fund', 'available', 'available', 1, now())`,
    ],
    ['transaction_settled_amount', `UPDATE transaction SET settled_amount = NULL WHERE status = 'success'`],
    ['transaction_settled_amount', `UPDATE transaction SET settled_amount = 0 WHERE status = 'success'`],
  ])('is stopped by %s: %s', async (constraint, statement) => {
    await expect(db.owner.query(statement)).rejects.toMatchObject({ code: '23514', constraint })
  })

  const insert = (type: string, amount: number, phone: string, more = '') =>
    `INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
       reference, request_data, created_at${more ? ', late' : ''})
     VALUES ((SELECT max(id) FROM merchant), '${type}', 'OperatorA', '${phone}', ${amount}, 'pending',
       'wall-${type}-${amount}', '{}', now()${more})`

  test.each([
    ['transaction_amount', insert('pay', 99, '+22370000001')],
    ['transaction_amount', insert('deposit', 999, '+22370000001')],
    ['transaction_amount', insert('balance_check', 1, '')],
    ['transaction_phone', insert('pay', 100, '70000001')],
    ['transaction_phone', insert('pay', 100, '')],
    ['transaction_late', insert('pay', 101, '+22370000001', ', true')],
  ])('is stopped by %s: %s', async (constraint, statement) => {
    await expect(db.owner.query(statement)).rejects.toMatchObject({ code: '23514', constraint })
  })

  test('cannot move money of a merchant without a balance', async () => {
    const move = db.owner.query(
      `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
       VALUES (2000000000, 'x', 'fund', 'funding', 'available', 1, now())`,
    )
    await expect(move).rejects.toMatchObject(guarded)
  })

  test('cannot have a movement take more than there is', async () => {
    const move = db.owner.query(
      `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
       VALUES ($1, 'too much', 'reserve', 'available', 'reserved', 15001, now())`,
      [merchant.merchantId],
    )
    await expect(move).rejects.toMatchObject({ constraint: 'merchant_balance_available' })
  })
})

/** Tables of the platform itself; every other one carries its merchant. */
const platform = [
  '_functions',
  '_payment_figure_fill',
  '_prisma_migrations',
  '_retired_functions',
  'audit_pass',
  'audit_point',
  'credential_change',
  'database_epoch',
  'installation',
  'lifecycle_move',
  'merchant',
  'operator_orphan',
  'operator_reference',
  'payments_out_halt',
  'rate_limit',
  'rate_limit_window',
  'sandbox_clock',
  'sign_in_address',
  'sign_in_wait',
  'signing_key',
]

test('every table carries its merchant, but for those of the platform', async () => {
  const { rows } = await db.owner.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_class c
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT EXISTS (
       SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'merchant_id')
     ORDER BY name`,
  )
  expect(rows.map((row) => row.name)).toEqual(platform)
})

test('a refund of one merchant cannot hang on the collection of another', async () => {
  const other = await fundedMerchant(pool, 0n)
  const refund = (merchantId: number, type: string) =>
    db.owner.query(
      `INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
         reference, request_data, refund_of_id, created_at)
       VALUES ($1, $2, 'OperatorA', '+22370000001', 500, 'processing', 'wall-refund', '{}', $3, now())`,
      [merchantId, type, paid],
    )
  await expect(refund(other.merchantId, 'deposit')).rejects.toMatchObject({ code: '23503' })
  await expect(refund(merchant.merchantId, 'pay')).rejects.toMatchObject({
    constraint: 'transaction_refund_of_id',
  })
})

test('a request of one merchant cannot hang on the transaction of another', async () => {
  const other = await fundedMerchant(pool, 0n)
  const stray = db.owner.query(
    `INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount, phone,
       fence_until, created_at)
     VALUES ($1, $2, 'OperatorA', 'collect', gen_random_uuid(), 5000, '+22370000001', now(), now())`,
    [other.merchantId, paid],
  )
  await expect(stray).rejects.toMatchObject({ code: '23503' })
})

test('no other role may call the functions', async () => {
  const { rows } = await db.owner.query(
    `SELECT proname FROM pg_proc p WHERE pronamespace = 'public'::regnamespace
       AND has_function_privilege('public', p.oid, 'EXECUTE') ORDER BY proname`,
  )
  expect(rows).toEqual([])
  await expect(pool.query('SELECT guard_transaction()')).rejects.toMatchObject(denied)
})
