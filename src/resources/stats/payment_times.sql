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
-- The planner expects few rows, and would sort the many that there are. A plan for all arguments would ask of
-- each row whether it is grouped by a property.
LANGUAGE sql STABLE SET search_path = public, pg_temp SET enable_sort = off
SET plan_cache_mode = force_custom_plan AS $$
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
    FROM piece p CROSS JOIN LATERAL (
      -- OFFSET 0 makes the planner search the index for each piece. It expects more pieces than there are,
      -- and would else read the times of the merchant of all days and hours.
      SELECT * FROM settle_time t
      WHERE t.merchant_id = merchant AND t.hours = p.hours AND t.start = p.start OFFSET 0
    ) AS s
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
  ), summed AS (
    SELECT s.period, s.kind, s.payment_method, s.settle_class, sum(s.n) OVER (
      PARTITION BY s.period, s.kind, s.payment_method ORDER BY s.settle_class ROWS UNBOUNDED PRECEDING
    ) AS upto
    FROM level s WHERE s.n > 0
  ), ranked AS (
    SELECT s.period, s.kind, s.payment_method, max(s.upto) AS total,
      array_agg(s.settle_class ORDER BY s.settle_class) AS classes,
      array_agg(s.upto ORDER BY s.settle_class) AS upto
    FROM summed s GROUP BY 1, 2, 3
  )
  -- `width_bucket` counts the classes below the median: those with `upto < total / 2`. Numbers of payments
  -- are whole, so `upto <= (total - 1) / 2` selects the same classes.
  SELECT r.period, r.kind, r.payment_method,
    r.classes[1 + width_bucket((r.total - 1) / 2, r.upto)],
    r.classes[1 + width_bucket((r.total * 19 - 1) / 20, r.upto)]
  FROM ranked r
$$;
