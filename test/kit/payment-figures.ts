import type pg from 'pg'

/** All payments of all merchants as figures see them: the time of each, and of a success the time it took. */
export const paymentsSql = `
  SELECT merchant_id, transaction_type::text AS type, payment_method, status::text, failure_reason,
    created_at AS at, amount, coalesce(settled_amount, 0) AS settled_amount, created_at AS begun,
    CASE status WHEN 'success' THEN settled_at END AS settled_at, payment_link_id
  FROM transaction WHERE transaction_type <> 'balance_check'
  UNION ALL
  SELECT merchant_id, 'payout', payment_method, CASE WHEN reversed_at IS NOT NULL THEN 'reversed'
      WHEN status = 'completed' THEN 'success' ELSE status::text END, failure_reason, created_at, amount,
    coalesce(settled_amount, 0), send_at,
    CASE WHEN status = 'completed' AND reversed_at IS NULL THEN settled_at END, NULL
  FROM payout
  UNION ALL
  SELECT merchant_id, 'recipient', payment_method,
    CASE WHEN reversed_at IS NOT NULL THEN 'reversed' ELSE status::text END, failure_reason, sent_at, amount,
    coalesce(settled_amount, 0), sent_at,
    CASE WHEN status = 'success' AND reversed_at IS NULL THEN settled_at END, NULL
  FROM batch_recipient WHERE sent_at IS NOT NULL`

/**
 * Compares the figures of payments and their times, with the changes that are not yet added to them, with the
 * payments themselves, in one snapshot.
 * @returns no row where they agree
 */
export async function wrongFigures(owner: pg.Pool | pg.ClientBase): Promise<string[]> {
  const { rows } = await owner.query<{ format: string }>(figuresProof)
  return rows.map(({ format }) => format)
}

const figuresProof = `
  WITH payment AS (${paymentsSql}), pending AS (
    SELECT merchant_id, hour, transaction_type::text AS type, payment_method, status::text, failure_reason,
      settle_class, n, amount, settled_amount
    FROM transaction_count_change WHERE transaction_type <> 'balance_check'
    UNION ALL
    SELECT merchant_id, hour, kind::text, payment_method, status::text, failure_reason, settle_class, n,
      amount, settled_amount
    FROM disbursement_change
  )
  SELECT format('%s h from %s: %s too many, %s and %s XOF too much of %s, %s, %s %s', e.hours, e.start,
    sum(e.n), sum(e.amount), sum(e.settled_amount), e.type, e.payment_method, e.status, e.reason)
  FROM (
    SELECT merchant_id, hours, start, kind::text AS type, payment_method, status::text,
      failure_reason AS reason, n, amount, settled_amount FROM payment_figure
    UNION ALL
    SELECT c.merchant_id, h, date_bin(h * interval '1 hour', c.hour, '2000-01-01 UTC'), c.type,
      c.payment_method, c.status, c.failure_reason, c.n, c.amount, c.settled_amount
    FROM pending c, unnest('{1,24}'::int[]) AS h
    UNION ALL
    SELECT p.merchant_id, h, date_bin(h * interval '1 hour', p.at, '2000-01-01 UTC'), p.type,
      p.payment_method, p.status, coalesce(p.failure_reason, ''), -1, -p.amount, -p.settled_amount
    FROM payment p, unnest('{1,24}'::int[]) AS h
  ) AS e
  GROUP BY e.merchant_id, e.hours, e.start, e.type, e.payment_method, e.status, e.reason
  HAVING sum(e.n) <> 0 OR sum(e.amount) <> 0 OR sum(e.settled_amount) <> 0
  UNION ALL
  SELECT format('%s h from %s: %s too many of %s, %s settled within %s ms', e.hours, e.start, sum(e.n),
    e.type, e.payment_method, e.class)
  FROM (
    SELECT merchant_id, hours, start, kind::text AS type, payment_method, settle_class AS class, n
    FROM settle_time
    UNION ALL
    SELECT c.merchant_id, h, date_bin(h * interval '1 hour', c.hour, '2000-01-01 UTC'), c.type,
      c.payment_method, c.settle_class, c.n
    FROM pending c, unnest('{1,24}'::int[]) AS h WHERE c.settle_class > 0
    UNION ALL
    SELECT p.merchant_id, h, date_bin(h * interval '1 hour', p.at, '2000-01-01 UTC'), p.type,
      p.payment_method, settle_class(p.begun, p.settled_at), -1
    FROM payment p, unnest('{1,24}'::int[]) AS h WHERE p.settled_at IS NOT NULL
  ) AS e
  GROUP BY e.merchant_id, e.hours, e.start, e.type, e.payment_method, e.class HAVING sum(e.n) <> 0
  UNION ALL
  SELECT format('link %s: %s too many, %s and %s XOF too much of %s within %s ms', e.payment_link_id,
    sum(e.n), sum(e.amount), sum(e.settled_amount), e.status, e.class)
  FROM (
    SELECT payment_link_id, status::text, settle_class AS class, n, amount, settled_amount FROM link_figure
    UNION ALL
    SELECT payment_link_id, status::text, settle_class, n, amount, settled_amount
    FROM transaction_count_change WHERE payment_link_id IS NOT NULL
    UNION ALL
    SELECT payment_link_id, status, settle_class(begun, settled_at), -1, -amount, -settled_amount
    FROM payment WHERE payment_link_id IS NOT NULL
  ) AS e
  GROUP BY e.payment_link_id, e.status, e.class
  HAVING sum(e.n) <> 0 OR sum(e.amount) <> 0 OR sum(e.settled_amount) <> 0`
