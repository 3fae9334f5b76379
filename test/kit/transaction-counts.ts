import type pg from 'pg'

/**
 * Compares the counts, the blocks and their offsets with the transactions themselves, in one snapshot.
 * @returns no row where they agree
 */
export async function wrongCounts(owner: pg.Pool | pg.ClientBase): Promise<string[]> {
  const { rows } = await owner.query<{ format: string }>(countsProof)
  return rows.map(({ format }) => format)
}

/**
 * Compares the counts and sums by hour, with the changes that are not yet added to them, with the
 * transactions themselves, in one snapshot.
 * @returns no row where they agree
 */
export async function wrongHours(owner: pg.Pool | pg.ClientBase): Promise<string[]> {
  const { rows } = await owner.query<{ format: string }>(hoursProof)
  return rows.map(({ format }) => format)
}

const countsProof = `
  WITH stretch AS (
    SELECT b.merchant_id, b.first_id, b.n, b.n_before,
      lead(b.first_id) OVER (PARTITION BY b.merchant_id ORDER BY b.first_id) AS next_id,
      sum(b.n) OVER (PARTITION BY b.merchant_id ORDER BY b.first_id) - b.n AS before
    FROM transaction_block b
  ), counted AS (
    SELECT k.merchant_id, k.first_id, k.transaction_type, k.payment_method, k.status, k.n
      FROM transaction_block_count k
    UNION ALL
    SELECT c.merchant_id, coalesce(s.first_id, 0), c.transaction_type, c.payment_method, c.status, c.n
    FROM transaction_count_change c LEFT JOIN stretch s ON s.merchant_id = c.merchant_id
      AND c.bucket * 1024 >= s.first_id AND (s.next_id IS NULL OR c.bucket * 1024 < s.next_id)
  ), real AS (
    SELECT t.merchant_id, coalesce(s.first_id, 0) AS first_id, t.transaction_type, t.payment_method,
      t.status, count(*) AS n
    FROM transaction t LEFT JOIN stretch s ON s.merchant_id = t.merchant_id
      AND t.id >= s.first_id AND (s.next_id IS NULL OR t.id < s.next_id)
    GROUP BY 1, 2, 3, 4, 5
  ), difference AS (
    SELECT merchant_id, first_id, transaction_type, payment_method, status, sum(n) AS n
    FROM (
      SELECT * FROM counted
      UNION ALL SELECT r.merchant_id, r.first_id, r.transaction_type, r.payment_method, r.status, -r.n
        FROM real r
    ) AS either
    GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0
  )
  SELECT d.merchant_id, format('block %s: %s too many of %s, %s, %s', d.first_id, d.n, d.transaction_type,
    d.payment_method, d.status)
  FROM difference d
  UNION ALL
  SELECT s.merchant_id, format('block %s says %s rows; its kinds say %s', s.first_id, s.n, coalesce(k.n, 0))
  FROM stretch s LEFT JOIN (
    SELECT k.merchant_id, k.first_id, sum(k.n) AS n FROM transaction_block_count k GROUP BY 1, 2
  ) AS k ON k.merchant_id = s.merchant_id AND k.first_id = s.first_id
  WHERE s.n <> coalesce(k.n, 0)
  UNION ALL
  SELECT s.merchant_id, format('block %s says that %s rows come before it; there are %s', s.first_id,
    s.n_before, s.before)
  FROM stretch s WHERE s.n_before <> s.before
  UNION ALL
  SELECT coalesce(c.merchant_id, k.merchant_id), format('%s, %s, %s: counted %s, in blocks %s',
    coalesce(c.transaction_type, k.transaction_type), coalesce(c.payment_method, k.payment_method),
    coalesce(c.status, k.status), coalesce(c.n, 0), coalesce(k.n, 0))
  FROM transaction_count c FULL JOIN (
    SELECT k.merchant_id, k.transaction_type, k.payment_method, k.status, sum(k.n) AS n
      FROM transaction_block_count k
    GROUP BY 1, 2, 3, 4
  ) AS k ON (k.merchant_id, k.transaction_type, k.payment_method, k.status)
    = (c.merchant_id, c.transaction_type, c.payment_method, c.status)
  WHERE coalesce(c.n, 0) <> coalesce(k.n, 0)`

const hoursProof = `
  SELECT e.merchant_id, format('hour %s: %s too many, %s and %s XOF too much of %s, %s, %s', e.hour, sum(e.n),
    sum(e.amount), sum(e.settled), e.transaction_type, e.payment_method, e.status)
  FROM (
    SELECT h.merchant_id, h.hour, h.transaction_type, h.payment_method, h.status, h.n, h.amount,
      h.settled_amount AS settled FROM transaction_hour h
    UNION ALL
    SELECT c.merchant_id, c.hour, c.transaction_type, c.payment_method, c.status, c.n, c.amount,
      c.settled_amount FROM transaction_count_change c
    UNION ALL
    SELECT t.merchant_id, date_trunc('hour', t.created_at, 'UTC'), t.transaction_type, t.payment_method,
      t.status, -1, -t.amount, -coalesce(t.settled_amount, 0) FROM transaction t
  ) AS e
  GROUP BY e.merchant_id, e.hour, e.transaction_type, e.payment_method, e.status
  HAVING sum(e.n) <> 0 OR sum(e.amount) <> 0 OR sum(e.settled) <> 0
  UNION ALL
  SELECT h.merchant_id, format('hour %s: its buckets leave out transaction %s', h.hour, t.id)
  FROM transaction t JOIN transaction_hour h ON h.merchant_id = t.merchant_id
    AND h.hour = date_trunc('hour', t.created_at, 'UTC') AND h.transaction_type = t.transaction_type
    AND h.payment_method = t.payment_method AND h.status = t.status
  WHERE t.id / 1024 NOT BETWEEN h.first_bucket AND h.last_bucket AND NOT EXISTS (
    SELECT FROM transaction_count_change c WHERE c.merchant_id = t.merchant_id AND c.bucket = t.id / 1024)`
