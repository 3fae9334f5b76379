-- Compares the counts and sums by hour, with the changes that are not yet added to them, with the
-- transactions themselves, in one snapshot. No row means that they agree. Every bucket must be filled.
CREATE OR REPLACE FUNCTION verify_transaction_hours() RETURNS TABLE (merchant_id int, problem text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT e.merchant_id, format('hour %s: %s too many, %s and %s XOF too much of %s, %s, %s', e.hour, sum(e.n),
    sum(e.amount), sum(e.settled), e.transaction_type, e.payment_method, e.status)
  FROM (
    SELECT h.merchant_id, h.hour, h.transaction_type, h.payment_method, h.status, h.n, h.amount,
      h.settled_amount AS settled FROM transaction_hour h
    UNION ALL
    SELECT c.merchant_id, c.hour, c.transaction_type, c.payment_method, c.status, c.n, c.amount,
      c.settled_amount FROM transaction_count_change c WHERE c.hour IS NOT NULL
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
    SELECT FROM transaction_count_change c WHERE c.merchant_id = t.merchant_id AND c.bucket = t.id / 1024)
$$;

REVOKE EXECUTE ON FUNCTION verify_transaction_hours FROM PUBLIC;
GRANT EXECUTE ON FUNCTION verify_transaction_hours TO payments_service;
