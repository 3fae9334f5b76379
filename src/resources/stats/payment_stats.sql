-- Returns the figures of a merchant's payments: in all (level 0), of each period (level 1), and of each group
-- within a period (level 2, only where `grouping_by` names something). Periods begin at the starts of `unit`
-- in `zone`; null is the zone of the merchant's settings. Where `with_times` is true, further rows (level 3)
-- have the times to settle: see `payment_times`. Days and hours are read from the figures, with the changes
-- that are not yet added to them, all in one snapshot. This function runs with the caller's own rights, so
-- that row-level security holds.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION payment_stats(
  merchant int,
  since timestamptz,
  until timestamptz,
  since_day boolean,
  until_day boolean,
  unit text,
  zone text,
  grouping_by text[],
  kinds payment_kind[],
  methods provider[],
  with_times boolean
) RETURNS TABLE (
  level int,
  zone_used text,
  period timestamptz,
  stop timestamptz,
  kind payment_kind,
  payment_method provider,
  status transaction_status,
  failure_reason text,
  n bigint,
  amount bigint,
  settled_amount bigint,
  succeeded bigint,
  ended bigint,
  median_ms bigint,
  p95_ms bigint
) LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  WITH local AS MATERIALIZED (
    SELECT coalesce(zone, m.time_zone) AS zone FROM merchant m WHERE m.id = merchant
  ), piece AS MATERIALIZED (
    SELECT p.* FROM local,
      stats_pieces(since, until, since_day, until_day, unit, local.zone) AS p
  ), span AS MATERIALIZED (
    SELECT min(p.start) AS first, max(p.start) AS last, max(p.start) FILTER (WHERE p.hours = 1) AS last_hour
    FROM piece p
  ), figure AS (
    SELECT d.* FROM payment_figure d WHERE d.merchant_id = merchant AND d.hours = 24
      AND d.start >= (SELECT span.first FROM span) AND d.start <= (SELECT span.last FROM span)
    UNION ALL
    SELECT h.* FROM payment_figure h WHERE h.merchant_id = merchant AND h.hours = 1
      AND h.start >= (SELECT span.first FROM span) AND h.start <= (SELECT span.last_hour FROM span)
  ), pending AS (
    SELECT t.hour, t.transaction_type::text::payment_kind AS kind, t.payment_method, t.status,
      t.failure_reason, t.n, t.amount, t.settled_amount
    FROM transaction_count_change t
    WHERE t.merchant_id = merchant AND t.transaction_type <> 'balance_check'
    UNION ALL
    SELECT d.hour, d.kind, d.payment_method, d.status, d.failure_reason, d.n, d.amount, d.settled_amount
    FROM disbursement_change d WHERE d.merchant_id = merchant
  ), binned AS MATERIALIZED (
    SELECT b.hours, date_bin(b.hours * interval '1 hour', c.hour, '2000-01-01 UTC') AS start, c.kind,
      c.payment_method, c.status, c.failure_reason, sum(c.n)::bigint AS n, sum(c.amount)::bigint AS amount,
      sum(c.settled_amount)::bigint AS settled_amount
    FROM pending c CROSS JOIN (VALUES (1), (24)) AS b (hours) GROUP BY 1, 2, 3, 4, 5, 6
  ), counted AS (
    SELECT p.period, p.stop, f.kind, f.payment_method, f.status, f.failure_reason, f.n, f.amount,
      f.settled_amount
    FROM figure f JOIN piece p ON p.hours = f.hours AND p.start = f.start
    UNION ALL
    SELECT p.period, p.stop, c.kind, c.payment_method, c.status, c.failure_reason, c.n, c.amount,
      c.settled_amount
    FROM binned c JOIN piece p ON p.hours = c.hours AND p.start = c.start
    -- Also of periods without payments there is a row.
    UNION ALL
    SELECT DISTINCT p.period, p.stop, NULL::payment_kind, NULL::provider, NULL::transaction_status, NULL,
      0, 0, 0
    FROM piece p
  ), chosen AS MATERIALIZED (
    SELECT c.period, c.stop, CASE WHEN 'type' = ANY (grouping_by) THEN c.kind END AS kind,
      CASE WHEN 'operator' = ANY (grouping_by) THEN c.payment_method END AS payment_method,
      CASE WHEN 'status' = ANY (grouping_by) THEN c.status END AS status,
      CASE WHEN 'failure' = ANY (grouping_by) THEN c.failure_reason END AS failure_reason,
      sum(c.n)::bigint AS n, sum(c.amount)::bigint AS amount, sum(c.settled_amount)::bigint AS settled_amount,
      sum(CASE c.status WHEN 'success' THEN c.n ELSE 0 END)::bigint AS succeeded,
      sum(CASE WHEN c.status IN ('pending', 'processing') THEN 0 ELSE c.n END)::bigint AS ended
    FROM counted c
    WHERE c.kind IS NULL OR (kinds IS NULL OR c.kind = ANY (kinds))
      AND (methods IS NULL OR c.payment_method = ANY (methods))
    GROUP BY 1, 2, 3, 4, 5, 6
  )
  SELECT 2 - GROUPING(c.period) - GROUPING(c.kind), (SELECT local.zone FROM local), c.period, c.stop, c.kind,
    c.payment_method, c.status, c.failure_reason, sum(c.n)::bigint, sum(c.amount)::bigint,
    sum(c.settled_amount)::bigint, sum(c.succeeded)::bigint, sum(c.ended)::bigint, NULL, NULL
  FROM chosen c
  GROUP BY GROUPING SETS ((), (c.period, c.stop),
    (c.period, c.stop, c.kind, c.payment_method, c.status, c.failure_reason))
  HAVING GROUPING(c.kind) = 1
    OR grouping_by <> '{}' AND (sum(c.n) <> 0 OR sum(c.amount) <> 0 OR sum(c.settled_amount) <> 0)
  UNION ALL
  SELECT 3, NULL, t.period, NULL, t.kind, t.payment_method, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    t.median_ms, t.p95_ms
  FROM payment_times(merchant, since, until, since_day, until_day, unit, zone, grouping_by, kinds,
    methods) AS t
  WHERE with_times
  ORDER BY 1, 3, 9 DESC
$$;
