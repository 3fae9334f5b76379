-- Returns the times to settle of a merchant's successful payments: in all (`period` is null), of each
-- period, and by kind and operator within a period where `grouping_by` names one of these. A time is the
-- smallest class within which so many payments were settled. Otherwise this function is like `payment_stats`.
-- Numbers are added up as float8, which is exact up to 2^53: sums of bigint would be numeric, and slower.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION payment_times(
  merchant int,
  since timestamptz,
  until timestamptz,
  since_day boolean,
  until_day boolean,
  unit text,
  zone text,
  grouping_by text[],
  kinds payment_kind[],
  methods provider[]
) RETURNS TABLE (
  period timestamptz,
  kind payment_kind,
  payment_method provider,
  median_ms bigint,
  p95_ms bigint
)
-- The planner expects few rows, and would sort the many that there are.
LANGUAGE sql STABLE SET search_path = public, pg_temp SET enable_sort = off AS $$
  WITH local AS MATERIALIZED (
    SELECT coalesce(zone, m.time_zone) AS zone FROM merchant m WHERE m.id = merchant
  ), piece AS MATERIALIZED (
    SELECT p.* FROM local,
      stats_pieces(since, until, since_day, until_day, unit, local.zone) AS p
  ), pending AS (
    SELECT t.hour, t.transaction_type::text::payment_kind AS kind, t.payment_method, t.settle_class, t.n
    FROM transaction_count_change t
    WHERE t.merchant_id = merchant AND t.transaction_type <> 'balance_check' AND t.settle_class > 0
    UNION ALL
    SELECT d.hour, d.kind, d.payment_method, d.settle_class, d.n
    FROM disbursement_change d WHERE d.merchant_id = merchant AND d.settle_class > 0
  ), binned AS MATERIALIZED (
    SELECT b.hours, date_bin(b.hours * interval '1 hour', c.hour, '2000-01-01 UTC') AS start, c.kind,
      c.payment_method, c.settle_class, sum(c.n)::float8 AS n
    FROM pending c CROSS JOIN (VALUES (1), (24)) AS b (hours) GROUP BY 1, 2, 3, 4, 5
  ), counted AS (
    SELECT p.period, s.kind, s.payment_method, s.settle_class, s.n::float8
    FROM piece p JOIN settle_time s ON s.merchant_id = merchant AND s.hours = p.hours AND s.start = p.start
    UNION ALL
    SELECT p.period, c.kind, c.payment_method, c.settle_class, c.n
    FROM binned c JOIN piece p ON p.hours = c.hours AND p.start = c.start
  ), chosen AS MATERIALIZED (
    SELECT c.period, CASE WHEN 'type' = ANY (grouping_by) THEN c.kind END AS kind,
      CASE WHEN 'operator' = ANY (grouping_by) THEN c.payment_method END AS payment_method, c.settle_class,
      sum(c.n) AS n
    FROM counted c
    WHERE (kinds IS NULL OR c.kind = ANY (kinds)) AND (methods IS NULL OR c.payment_method = ANY (methods))
    GROUP BY 1, 2, 3, 4
  ), level AS (
    SELECT c.* FROM chosen c
    UNION ALL
    SELECT c.period, NULL, NULL, c.settle_class, sum(c.n) FROM chosen c
    WHERE grouping_by && '{type,operator}' GROUP BY c.period, c.settle_class
    UNION ALL
    SELECT NULL, NULL, NULL, c.settle_class, sum(c.n) FROM chosen c GROUP BY c.settle_class
  ), ranked AS (
    SELECT s.*, sum(s.n) OVER (w ORDER BY s.settle_class) AS upto, sum(s.n) OVER w AS total
    FROM level s WHERE s.n > 0
    WINDOW w AS (PARTITION BY s.period, s.kind, s.payment_method)
  )
  SELECT r.period, r.kind, r.payment_method,
    min(r.settle_class) FILTER (WHERE r.upto * 2 >= r.total),
    min(r.settle_class) FILTER (WHERE r.upto * 20 >= r.total * 19)
  FROM ranked r GROUP BY 1, 2, 3
$$;
