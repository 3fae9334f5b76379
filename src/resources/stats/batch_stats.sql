-- Returns the figures of batches, from their recipients; no row for a batch without recipients. It runs with
-- the caller's own rights, so that row-level security holds.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION batch_stats(merchant int, batch_ids int[]) RETURNS TABLE (
  batch_id int,
  n bigint,
  amount bigint,
  settled_amount bigint,
  succeeded bigint,
  ended bigint,
  median_ms bigint,
  p95_ms bigint
) LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT s.batch_id, s.n, s.amount, s.settled_amount, s.succeeded, s.ended,
    nullif(settle_class('epoch', 'epoch'::timestamptz + s.median), 0),
    nullif(settle_class('epoch', 'epoch'::timestamptz + s.p95), 0)
  FROM (
    SELECT r.batch_id, count(*) AS n, sum(r.amount)::bigint AS amount,
      coalesce(sum(r.settled_amount), 0)::bigint AS settled_amount,
      count(*) FILTER (WHERE r.status = 'success' AND r.reversed_at IS NULL) AS succeeded,
      count(*) FILTER (WHERE r.status NOT IN ('pending', 'processing')) AS ended,
      percentile_disc(0.5) WITHIN GROUP (ORDER BY r.settled_at - r.sent_at)
        FILTER (WHERE r.status = 'success' AND r.reversed_at IS NULL) AS median,
      percentile_disc(0.95) WITHIN GROUP (ORDER BY r.settled_at - r.sent_at)
        FILTER (WHERE r.status = 'success' AND r.reversed_at IS NULL) AS p95
    FROM batch_recipient r WHERE r.batch_id = ANY (batch_ids) AND r.merchant_id = merchant
    GROUP BY r.batch_id
  ) AS s
$$;
