-- Returns the figures of payments by links, with the changes that are not yet added to them; no row for a
-- link without payments. It runs with the caller's own rights, so that row-level security holds.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION link_stats(merchant int, link_ids int[]) RETURNS TABLE (
  link_id int,
  n bigint,
  amount bigint,
  settled_amount bigint,
  succeeded bigint,
  ended bigint,
  median_ms bigint,
  p95_ms bigint
) LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  WITH counted AS (
    SELECT f.payment_link_id, f.status, f.settle_class, f.n, f.amount, f.settled_amount
    FROM link_figure f WHERE f.merchant_id = merchant AND f.payment_link_id = ANY (link_ids)
    UNION ALL
    SELECT c.payment_link_id, c.status, c.settle_class, c.n, c.amount, c.settled_amount
    FROM transaction_count_change c WHERE c.merchant_id = merchant AND c.payment_link_id = ANY (link_ids)
  ), summed AS (
    SELECT c.payment_link_id, c.status, c.settle_class, sum(c.n)::bigint AS n, sum(c.amount) AS amount,
      sum(c.settled_amount) AS settled_amount
    FROM counted c GROUP BY 1, 2, 3
  ), ranked AS (
    SELECT s.*, s.settle_class > 0 AND s.n > 0 AS is_timed, sum(s.n) FILTER (WHERE s.settle_class > 0)
        OVER (PARTITION BY s.payment_link_id ORDER BY s.settle_class) AS upto,
      sum(s.n) FILTER (WHERE s.settle_class > 0) OVER (PARTITION BY s.payment_link_id) AS total
    FROM summed s
  )
  SELECT r.payment_link_id, sum(r.n)::bigint, sum(r.amount)::bigint, sum(r.settled_amount)::bigint,
    coalesce(sum(r.n) FILTER (WHERE r.status = 'success'), 0)::bigint,
    coalesce(sum(r.n) FILTER (WHERE r.status NOT IN ('pending', 'processing')), 0)::bigint,
    min(r.settle_class) FILTER (WHERE r.is_timed AND r.upto * 2 >= r.total),
    min(r.settle_class) FILTER (WHERE r.is_timed AND r.upto * 20 >= r.total * 19)
  FROM ranked r GROUP BY 1
$$;
