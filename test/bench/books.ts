import type pg from 'pg'

/** The rows of one group of payments: 5 collections, 3 deposits and 2 payouts, all of them paid. */
export const group = { transactions: 8, payouts: 2, entries: 15, events: 22 }

/**
 * Fills the books with sound payments, by one statement per table: groups from `first` on, one merchant's
 * after another's. The ids say what belongs together, so the tables are filled without reading each other.
 * @param options.first groups that are there already, all made by this with the same merchants
 * @param options.firstMerchant the first id of the merchants, where they are there already
 * @param options.hot gives half of the groups to the first merchant
 * @param options.fast drops the indexes and makes them anew afterwards: for millions of rows
 */
export async function fillBooks(
  owner: pg.Pool,
  { first = 0, groups, merchants, firstMerchant, hot = false, fast = false }: FillOptions,
): Promise<void> {
  const merchantOne = firstMerchant ?? 1_000
  const client = await owner.connect()
  try {
    await client.query(`SET session_replication_role = replica; SET synchronous_commit = off;
      SET maintenance_work_mem = '1GB'; SET statement_timeout = 0`)
    const indexes = fast ? await dropIndexes(client) : []
    if (first === 0 && firstMerchant === undefined) await openAccounts(client, merchants)
    const whose = [merchants, merchantOne, hot]
    for (const statement of Object.values(rows)) await client.query(statement, [first, groups, ...whose])
    for (const statement of kept) await client.query(statement, [0, first + groups, ...whose])
    await client.query(
      `SELECT setval('transaction_id_seq', $1::bigint * 8), setval('payout_id_seq', $1 * 2),
         setval('ledger_entry_id_seq', $1 * 15), setval('event_id_seq', $1 * 22)`,
      [first + groups],
    )
    for (const index of indexes) await client.query(index)
    await client.query('RESET ALL')
  } finally {
    client.release(true)
  }
  await owner.query('ANALYZE transaction, payout, operator_request, ledger_entry, event')
}

interface FillOptions {
  first?: number
  groups: number
  merchants: number
  firstMerchant?: number
  hot?: boolean
  fast?: boolean
}

/** Records that the books are proven up to here, as the service does. */
export async function recordPoint(owner: pg.Pool): Promise<void> {
  await owner.query(`
    DELETE FROM audit_point; DELETE FROM audit_proven;
    INSERT INTO audit_point (ledger_entry_id, event_id, next_ledger_entry_id, next_event_id, proven_at)
    SELECT m, e, m, e, now() FROM (SELECT max(id) AS m FROM ledger_entry), (SELECT max(id) AS e FROM event);
    INSERT INTO audit_proven (merchant_id, available, reserved, receivable, position)
    SELECT merchant_id, available, reserved, receivable, position
    FROM merchant_balance JOIN event_log_position USING (merchant_id)`)
}

async function openAccounts(client: pg.PoolClient, merchants: number): Promise<void> {
  await client.query(
    `INSERT INTO merchant (id, name) SELECT 1000 + n, 'Bench ' || n FROM generate_series(0, $1 - 1) AS n`,
    [merchants],
  )
}

/**
 * Group g is the `nth` of its merchant: the groups go round among the merchants ($4 is the first one),
 * or every second one belongs to the first ($5). Row j of a group has the id g * (rows of a group) + j.
 */
const source = `FROM generate_series($1::bigint, $1 + $2::bigint - 1) AS g
  CROSS JOIN LATERAL (SELECT $4::int + place::int AS merchant, nth
    FROM (SELECT g % $3::bigint, g / $3 WHERE NOT $5::boolean
      UNION ALL SELECT 0, g / 2 WHERE $5 AND g % 2 = 0
      UNION ALL SELECT 1 + g / 2 % ($3 - 1), g / 2 / ($3 - 1) WHERE $5 AND g % 2 = 1) AS w (place, nth)) AS m`

const rows = {
  transactions: `INSERT INTO transaction (id, merchant_id, transaction_type, payment_method, customer_phone,
      amount, status, reference, request_data, operator_reference, settled_amount, evidence_source,
      settled_at, created_at, correlation_id)
    SELECT g * 8 + j, merchant, CASE WHEN j <= 5 THEN 'pay' ELSE 'deposit' END::transaction_type, 'OperatorA',
      '+22370000001', CASE WHEN j <= 5 THEN 5000 ELSE 2000 END, 'success', 'bench-' || g * 8 + j, '{}',
      'op-' || g * 8 + j, CASE WHEN j <= 5 THEN 5000 ELSE 2000 END, 'query', now(), now(),
      md5('transaction:' || g * 8 + j)::uuid
    ${source} CROSS JOIN generate_series(1, 8) AS j ORDER BY g, j`,
  payouts: `INSERT INTO payout (id, merchant_id, payment_method, destination_phone, amount, status, reference,
      send_at, approval, maker, request_data, settled_amount, evidence_source, settled_at, created_at,
      correlation_id)
    SELECT g * 2 + j, merchant, 'OperatorA', '+22370000002', 2000, 'completed', 'bench-' || g * 2 + j, now(),
      'not_required', 'api_key:1', '{}', 2000, 'query', now(), now(), md5('payout:' || g * 2 + j)::uuid
    ${source} CROSS JOIN generate_series(1, 2) AS j ORDER BY g, j`,
  requests: `INSERT INTO operator_request (merchant_id, transaction_id, payout_id, provider, kind,
      correlation_id, amount, phone, state, fence_until, created_at)
    SELECT merchant, CASE WHEN j <= 8 THEN g * 8 + j END, CASE WHEN j > 8 THEN g * 2 + j - 8 END, 'OperatorA',
      CASE WHEN j <= 5 THEN 'collect' ELSE 'disburse' END::operator_request_kind,
      md5(CASE WHEN j <= 8 THEN 'transaction:' || g * 8 + j ELSE 'payout:' || g * 2 + j - 8 END)::uuid,
      CASE WHEN j <= 5 THEN 5000 ELSE 2000 END,
      CASE WHEN j <= 8 THEN '+22370000001' ELSE '+22370000002' END, 'settled', now(), now()
    ${source} CROSS JOIN generate_series(1, 10) AS j ORDER BY g, j`,
  // 1 to 5: collections. Then a reservation and its end in turn, of deposits and payouts.
  entries: `INSERT INTO ledger_entry (id, merchant_id, origin, step, debit, credit, amount, created_at)
    SELECT g * 15 + j, merchant,
      CASE WHEN j <= 5 THEN 'transaction:' || g * 8 + j
        WHEN j <= 11 THEN 'transaction:' || g * 8 + 5 + (j - 4) / 2
        ELSE 'payout:' || g * 2 + (j - 10) / 2 END,
      CASE WHEN j <= 5 THEN 'credit' WHEN j % 2 = 0 THEN 'reserve' ELSE 'post' END::ledger_step,
      CASE WHEN j <= 5 THEN 'clearing_operator_a' WHEN j % 2 = 0 THEN 'available'
        ELSE 'reserved' END::ledger_account,
      CASE WHEN j <= 5 THEN 'available' WHEN j % 2 = 0 THEN 'reserved'
        ELSE 'clearing_operator_a' END::ledger_account,
      CASE WHEN j <= 5 THEN 5000 ELSE 2000 END, now()
    ${source} CROSS JOIN generate_series(1, 15) AS j ORDER BY g, j`,
  // 1 to 16: two of each transaction. Then three of each payout.
  events: `INSERT INTO event (id, merchant_id, position, type, data, created_at)
    SELECT g * 22 + j, merchant, nth * 22 + j, type,
      jsonb_strip_nulls(jsonb_build_object('transaction_id', CASE WHEN j <= 16 THEN g * 8 + (j + 1) / 2 END,
        'payout_id', CASE WHEN j > 16 THEN g * 2 + (j - 14) / 3 END,
        'amount', CASE WHEN j <= 10 THEN 5000 ELSE 2000 END, 'currency', 'XOF', 'payment_method', 'OperatorA',
        'status', status, 'previous_status', was)), now()
    ${source} CROSS JOIN generate_series(1, 22) AS j CROSS JOIN LATERAL (
      SELECT * FROM (VALUES (0, 1, 'payment_pending', 'pending', NULL),
        (0, 0, 'payment_received', 'success', 'pending'), (1, 1, 'deposit_processing', 'processing', NULL),
        (1, 0, 'deposit_completed', 'success', 'processing'),
        (2, 2, 'payout_pending', 'pending', NULL), (2, 0, 'payout_processing', 'processing', 'pending'),
        (2, 1, 'payout_completed', 'completed', 'processing')) AS t (sort, turn, type, status, was)
      WHERE sort = CASE WHEN j <= 10 THEN 0 WHEN j <= 16 THEN 1 ELSE 2 END
        AND turn = CASE WHEN j <= 16 THEN j % 2 ELSE j % 3 END) AS t ORDER BY g, j`,
}

/** The balances and counts that are kept beside the rows of all groups. */
const ofMerchants = `FROM (SELECT merchant, count(*) AS groups ${source} GROUP BY merchant) AS m`
const kept = [
  `INSERT INTO merchant_balance (merchant_id, available) SELECT merchant, groups * 15000 ${ofMerchants}
   ON CONFLICT (merchant_id) DO UPDATE SET available = excluded.available`,
  // Without a snapshot, the first 256 entries of a bench would read all these entries.
  `WITH made AS (
     INSERT INTO balance_snapshot (merchant_id, at, available, reserved, receivable, total_in, total_out)
     SELECT merchant, now() + interval '1 millisecond', groups * 15000, 0, 0, groups * 25000, groups * 10000
     ${ofMerchants} ON CONFLICT (merchant_id, at) DO NOTHING RETURNING merchant_id, at)
   UPDATE merchant_balance b SET snapshot_at = made.at FROM made WHERE made.merchant_id = b.merchant_id`,
  `INSERT INTO event_log_position (merchant_id, position) SELECT merchant, groups * 22 ${ofMerchants}
   ON CONFLICT (merchant_id) DO UPDATE SET position = excluded.position`,
  `INSERT INTO payout_count (merchant_id, payment_method, status, n)
   SELECT merchant, 'OperatorA', 'completed', groups * 2 ${ofMerchants}
   ON CONFLICT (merchant_id, payment_method, status) DO UPDATE SET n = excluded.n`,
]

/** @returns the statements that make them again */
async function dropIndexes(client: pg.PoolClient): Promise<string[]> {
  const { rows: found } = await client.query<{ name: string; made: string }>(`
    SELECT c.relname AS name, pg_get_indexdef(i.indexrelid) AS made
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = ANY ('{transaction,payout,operator_request,ledger_entry,event}'::regclass[])
      AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid)`)
  for (const { name } of found) await client.query(`DROP INDEX "${name}"`)
  return found.map(({ made }) => made)
}
