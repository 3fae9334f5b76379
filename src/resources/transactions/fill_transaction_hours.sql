-- Counts by hour the transactions of the next `take` buckets from before the hours were counted. One snapshot
-- shows a transaction and the pending change of its count together, so that the sum of the hours and the
-- pending changes is exact while others write. Only one caller at a time does this or compacts the counts.
-- Returns true while buckets remain.
CREATE OR REPLACE FUNCTION fill_transaction_hours(take int) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp SET enable_seqscan = off AS $$
DECLARE
  filled bigint;
  finish bigint;
  stop bigint;
BEGIN
  IF NOT pg_try_advisory_xact_lock(72707374) THEN RETURN false; END IF;
  SELECT next_bucket, end_bucket INTO filled, finish FROM transaction_hour_fill;
  IF filled >= finish THEN RETURN false; END IF;
  finish := coalesce(finish, (SELECT max(id) FROM transaction) / 1024 + 1, 0);
  stop := least(filled + take, finish);
  INSERT INTO transaction_hour AS k (merchant_id, hour, transaction_type, payment_method, status, n, amount,
    settled_amount, first_bucket, last_bucket)
  SELECT merchant_id, hour, transaction_type, payment_method, status, sum(n), sum(amount),
    sum(settled_amount), min(bucket), max(bucket)
  FROM (
    SELECT merchant_id, date_trunc('hour', created_at, 'UTC') AS hour, transaction_type, payment_method,
      status, 1 AS n, amount, coalesce(settled_amount, 0) AS settled_amount, id / 1024 AS bucket
    FROM transaction WHERE id >= filled * 1024 AND id < stop * 1024
    UNION ALL
    SELECT merchant_id, hour, transaction_type, payment_method, status, -n, -amount, -settled_amount, bucket
    FROM transaction_count_change WHERE bucket >= filled AND bucket < stop AND hour IS NOT NULL
  ) AS counted
  GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2
  ON CONFLICT (merchant_id, hour, transaction_type, payment_method, status) DO UPDATE
    SET n = k.n + excluded.n, amount = k.amount + excluded.amount,
      settled_amount = k.settled_amount + excluded.settled_amount,
      first_bucket = least(k.first_bucket, excluded.first_bucket),
      last_bucket = greatest(k.last_bucket, excluded.last_bucket);
  UPDATE transaction_hour_fill SET next_bucket = stop, end_bucket = finish;
  RETURN stop < finish;
END $$;

REVOKE EXECUTE ON FUNCTION fill_transaction_hours FROM PUBLIC;
GRANT EXECUTE ON FUNCTION fill_transaction_hours TO payments_service;
