import type pg from 'pg'
import type { ExecutedOrder } from './operator.ts'
import type { Postgres } from './postgres.ts'
import type { RecordedEvent } from './readers.ts'
import type { BatchAcknowledgement, Acknowledgement } from './workload.ts'

/**
 * A transaction, payout or recipient. One that was paid reads `success`, or `reversed` where the money came
 * back.
 */
export interface TransactionRow {
  kind: 'pay' | 'deposit' | 'payout' | 'recipient'
  id: number
  merchant_id: number
  reference: string
  amount: number
  customer_phone: string
  payment_method: string
  status: string
  settled_amount: number | null
  /** The sum that its refunds gave back. */
  refunded: number
  /** The identity under which the operator was asked. */
  identity: string | null
  attempt: number
  next_check: boolean
}

export interface EventRow {
  merchant_id: number
  position: number | null
  type: string
  /** Null for payouts and uses of links: their events are in other streams. */
  transaction_id: number | null
  reference: string
  status: string
}

/** All that the books say, and all that the service answered about them, at one moment. */
export interface Snapshot {
  /** Copied before the database is read: the database may lack an order that was acknowledged later. */
  acknowledgements: readonly Acknowledgement[]
  batchAcknowledgements: readonly BatchAcknowledgement[]
  readers: readonly { name: string; merchantId: number; recorded: readonly RecordedEvent[] }[]
  /** Identities that the operators had executed before the database was read. */
  executed: readonly string[]
  transactions: readonly TransactionRow[]
  payouts: readonly TransactionRow[]
  recipients: readonly TransactionRow[]
  batches: readonly BatchRow[]
  entries: readonly EntryRow[]
  balances: readonly { merchant_id: number; available: number; reserved: number }[]
  heads: readonly { merchant_id: number; position: number }[]
  events: readonly EventRow[]
  overfullLinks: readonly OverfullLink[]
  /** Problems that the proof finds now, and those that the service found before. */
  ledgerProblems: readonly string[]
  operators: ReadonlyMap<string, readonly ExecutedOrder[]>
}

/** A batch with its own counts, and the counts of its recipients and events. */
interface BatchRow {
  id: number
  status: string
  started: boolean
  ended: boolean
  /** The counts of the batch, and those of its rows, in the same form. */
  counted: string
  found: string
  size: number
  done: number
}

/** A link that accepted an attempt when all its places were taken. */
interface OverfullLink {
  id: number
  places: number
  /** Payments and open attempts when the last of them began. */
  taken: number
}

interface EntryRow {
  merchant_id: number
  origin: string
  step: string
  debit: string
  credit: string
  amount: number
}

const queries = {
  transactions: `SELECT t.transaction_type::text AS kind, t.id::float8 AS id, t.merchant_id, t.reference,
      t.amount::float8 AS amount, t.customer_phone, t.payment_method::text, t.status::text,
      t.settled_amount::float8 AS settled_amount, coalesce((
        SELECT sum(g.settled_amount) FROM transaction g WHERE g.refund_of_id = t.id
      ), 0)::float8 AS refunded,
      r.correlation_id::text AS identity, r.attempt, r.next_check_at IS NOT NULL AS next_check
    FROM transaction t LEFT JOIN operator_request r ON r.transaction_id = t.id`,
  payouts: `SELECT 'payout' AS kind, p.id::float8 AS id, p.merchant_id, p.reference,
      p.amount::float8 AS amount, p.destination_phone AS customer_phone, p.payment_method::text,
      CASE WHEN p.reversed_at IS NOT NULL THEN 'reversed' WHEN p.status = 'completed' THEN 'success'
        ELSE p.status::text END AS status, p.settled_amount::float8 AS settled_amount, 0::float8 AS refunded,
      r.correlation_id::text AS identity, r.attempt, r.next_check_at IS NOT NULL AS next_check
    FROM payout p LEFT JOIN operator_request r ON r.payout_id = p.id`,
  recipients: `SELECT 'recipient' AS kind, p.id::float8 AS id, p.merchant_id, p.id::text AS reference,
      p.amount::float8 AS amount, p.account AS customer_phone, p.payment_method::text,
      CASE WHEN p.reversed_at IS NOT NULL THEN 'reversed' WHEN b.status = 'draft' THEN 'draft'
        ELSE p.status::text END AS status, p.settled_amount::float8 AS settled_amount, 0::float8 AS refunded,
      r.correlation_id::text AS identity, r.attempt, r.next_check_at IS NOT NULL AS next_check
    FROM batch_recipient p JOIN batch b ON b.id = p.batch_id
      LEFT JOIN operator_request r ON r.recipient_id = p.id`,
  batches: `SELECT b.id, b.status::text, b.started_at IS NOT NULL AS started,
      b.processed_at IS NOT NULL AS ended,
      concat_ws(' ', b.recipient_count, b.succeeded_count, b.failed_count, b.cancelled_count, b.paid_amount)
        AS counted,
      concat_ws(' ', r.n, r.succeeded, r.failed, r.cancelled, r.paid) AS found, r.n AS size,
      (SELECT count(*)::int FROM event e WHERE e.type = 'bulk_pay_done' AND e.data->>'batch_id' = b.id::text)
        AS done
    FROM batch b CROSS JOIN LATERAL (
      SELECT count(*)::int AS n, count(*) FILTER (WHERE r.status = 'success') AS succeeded,
        count(*) FILTER (WHERE r.status = 'failed') AS failed,
        count(*) FILTER (WHERE r.status = 'cancelled') AS cancelled,
        coalesce(sum(r.settled_amount), 0) AS paid
      FROM batch_recipient r WHERE r.batch_id = b.id) AS r`,
  entries: `SELECT merchant_id, origin, step::text, debit::text, credit::text, amount::float8 AS amount
    FROM ledger_entry`,
  balances: `SELECT merchant_id, available::float8 AS available, reserved::float8 AS reserved
    FROM merchant_balance`,
  heads: 'SELECT merchant_id, position::float8 AS position FROM event_log_position',
  events: `SELECT merchant_id, position::float8 AS position, type,
      CASE WHEN type <> 'payment_link_used' THEN (data->>'transaction_id')::float8 END AS transaction_id,
      data->>'reference' AS reference,
      data->>'status' AS status
    FROM event ORDER BY merchant_id, position NULLS LAST, id`,
  overfullLinks: `WITH ended AS MATERIALIZED (
      SELECT (data->>'transaction_id')::bigint AS id,
        min(created_at) FILTER (WHERE type IN ('payment_failed', 'payment_expired')) AS freed_at,
        min(created_at) FILTER (WHERE type = 'payment_received') AS paid_at
      FROM event WHERE data ? 'transaction_id' GROUP BY 1)
    SELECT l.id, l.usage_limit AS places, count(*)::int AS taken
    FROM payment_link l JOIN transaction t ON t.payment_link_id = l.id
    JOIN transaction o ON o.payment_link_id = l.id AND (o.created_at, o.id) <= (t.created_at, t.id)
    LEFT JOIN ended e ON e.id = o.id
    WHERE (e.freed_at <= t.created_at) IS NOT TRUE OR e.paid_at <= t.created_at
    GROUP BY l.id, t.id HAVING count(*) > l.usage_limit`,
  problems: `SELECT concat_ws(': ', invariant, merchant_id, problem) AS problem FROM audit_ledger(true)
    UNION ALL SELECT 'payments out are halted: ' || reason FROM payments_out_halt`,
}

/**
 * Takes a snapshot. The order matters: the acknowledgements are copied first, then the database is read, and
 * the operators last, because they are always ahead of the service.
 */
export async function takeSnapshot(
  postgres: Postgres,
  said: {
    acknowledgements: readonly Acknowledgement[]
    batchAcknowledgements: readonly BatchAcknowledgement[]
    readers: readonly { name: string; merchantId: number; recorded: readonly RecordedEvent[] }[]
  },
  book: () => ReadonlyMap<string, readonly ExecutedOrder[]>,
): Promise<Snapshot> {
  const acknowledgements = [...said.acknowledgements]
  const batchAcknowledgements = said.batchAcknowledgements.map((acknowledgement) => ({ ...acknowledgement }))
  const executed = [...book().keys()]
  const readers = said.readers.map(({ name, merchantId, recorded }) => ({
    name,
    merchantId,
    recorded: [...recorded],
  }))
  const rows = await postgres.read(async (client) => {
    const read = async <Row extends pg.QueryResultRow>(text: string) => (await client.query<Row>(text)).rows
    return {
      transactions: await read<TransactionRow>(queries.transactions),
      payouts: await read<TransactionRow>(queries.payouts),
      recipients: await read<TransactionRow>(queries.recipients),
      batches: await read<BatchRow>(queries.batches),
      entries: await read<EntryRow>(queries.entries),
      balances: await read<Snapshot['balances'][number]>(queries.balances),
      heads: await read<Snapshot['heads'][number]>(queries.heads),
      events: await read<EventRow>(queries.events),
      overfullLinks: await read<OverfullLink>(queries.overfullLinks),
      ledgerProblems: (await read<{ problem: string }>(queries.problems)).map(({ problem }) => problem),
    }
  })
  return { acknowledgements, batchAcknowledgements, readers, executed, ...rows, operators: book() }
}

/** Counts what is still under way: nothing once the run is over. */
export async function countOpen(postgres: Postgres): Promise<{ open: number; asked: number }> {
  const open = await postgres.read((client) =>
    client.query<{ open: number; asked: number }>(
      `SELECT (SELECT count(*)::int FROM transaction WHERE status IN ('pending', 'processing'))
          + (SELECT count(*)::int FROM payout WHERE status IN ('pending', 'processing'))
          + (SELECT count(*)::int FROM batch WHERE status = 'processing') AS open,
        (SELECT count(*)::int FROM operator_request WHERE next_check_at IS NOT NULL) AS asked`,
    ),
  )
  return open.rows[0] ?? { open: 0, asked: 0 }
}
