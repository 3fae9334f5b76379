import type pg from 'pg'
import { fillBooks, group, recordPoint } from '../books.ts'

/**
 * Fills a database with settled payments, half of them of the first merchant, in books that their proof finds
 * sound. Beside them stand what an operator said about each, who began it, and the counts of the lists.
 * @param merchantIds follow one another
 */
export async function fillDatabase(
  owner: pg.Pool,
  rows: number,
  merchantIds: readonly number[],
): Promise<void> {
  const [firstMerchant = 0] = merchantIds
  const groups = Math.ceil(rows / group.transactions)
  await fillBooks(owner, { groups, merchants: merchantIds.length, firstMerchant, hot: true, fast: true })
  const client = await owner.connect()
  try {
    await client.query(`SET session_replication_role = replica; SET synchronous_commit = off;
      SET statement_timeout = 0; SET work_mem = '256MB'`)
    for (const statement of beside) await client.query(statement)
    await client.query('VACUUM ANALYZE')
  } finally {
    client.release(true)
  }
  await recordPoint(owner)
}

/** The chain of the audit log is left out: only the service can make its hashes, one by one. */
const beside = [
  `INSERT INTO operator_exchange (merchant_id, request_id, operation, method, path, status, request_body,
     response_body, duration_ms, at)
   SELECT merchant_id, id, kind, 'POST', '/op-a/v1.2/mm/transactions', 202,
     format('{"amount":"%s","currency":"XOF","requestingOrganisationTransactionReference":"%s"}', amount,
       correlation_id),
     format('{"serverCorrelationId":"%s","status":"pending"}', correlation_id),
     20, created_at
   FROM operator_request ORDER BY id`,
  `INSERT INTO operator_callback (merchant_id, request_id, provider, dedupe_key, body, received_at)
   SELECT merchant_id, id, provider, md5(correlation_id::text),
     format('{"serverCorrelationId":"%s","status":"completed"}', correlation_id),
     created_at
   FROM operator_request ORDER BY id`,
  `INSERT INTO audit_entry (merchant_id, actor, operation, target, channel, is_payment, after, at)
   SELECT merchant_id, 'api_key:1', 'collect', 'transaction:' || id, 'rest', true,
     jsonb_build_object('amount', amount, 'reference', reference), created_at
   FROM transaction ORDER BY id`,
  `INSERT INTO transaction_count_change (merchant_id, bucket, transaction_type, payment_method, status, hour,
     n, amount, settled_amount)
   SELECT merchant_id, id / 1024, transaction_type, payment_method, status,
     date_trunc('hour', created_at, 'UTC'), count(*), sum(amount), coalesce(sum(settled_amount), 0)
   FROM transaction GROUP BY 1, 2, 3, 4, 5, 6`,
  'SELECT compact_transaction_counts(2147483647)',
]
