-- Proves that the events of deposits, refunds and payouts report each change of status once.
-- `audit_disbursements` calls this function with its own planner settings.
CREATE OR REPLACE FUNCTION audit_disbursed_events(ids bigint[], payout_ids bigint[], origins text[])
RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE sql STABLE AS $$
  -- Each event adds the hash of its status and subtracts the hash of the status before. If no event is
  -- missing or doubled, the hashes cancel out, except for the hash of the last status (`net`).
  WITH lawful (type, was, status) AS MATERIALIZED (VALUES
    ('deposit_pending', '', 'pending'), ('deposit_processing', 'pending', 'processing'),
    ('deposit_cancelled', 'pending', 'cancelled'), ('deposit_processing', '', 'processing'), (
      'deposit_completed', 'processing', 'success'),
    ('deposit_failed', 'processing', 'failed'), ('deposit_reversed', 'success', 'reversed'),
    ('payout_pending', '', 'pending'), ('payout_processing', 'pending', 'processing'), ('payout_failed',
      'pending', 'failed'),
    ('payout_cancelled', 'pending', 'cancelled'), ('payout_completed', 'processing', 'completed'),
    ('payout_failed', 'processing', 'failed'), ('payout_reversed', 'completed', 'completed')
  ), events AS (
    SELECT c.origin, min(c.merchant_id) AS merchant_id, max(c.merchant_id) AS merchant_id_too,
      count(*) FILTER (WHERE c.was = '') AS begun, count(*)
        FILTER (WHERE c.type LIKE '%\_reversed') AS reversed,
      bool_and(((c.type, c.was, c.status) IN (SELECT l.type, l.was, l.status FROM lawful l)) IS TRUE)
        AND count(*) = count(DISTINCT c.type) AS lawful,
      sum(hashtext(c.status)::bigint - CASE c.was WHEN '' THEN 0 ELSE hashtext(c.was) END) AS net
    FROM (
      SELECT e.id, e.merchant_id, e.type, e.data->>'status' AS status,
        coalesce(e.data->>'previous_status', '') AS was, event_origin(e.data) AS origin
      FROM event e WHERE event_origin(e.data) = ANY (origins)
        AND (e.type LIKE 'deposit\_%' OR e.type LIKE 'payout\_%')
      OFFSET 0
    ) c GROUP BY c.origin
  ), subject AS (
    SELECT 'transaction:' || t.id AS origin, t.merchant_id, t.status::text AS status,
      t.status = 'reversed' AS back
    FROM transaction t WHERE t.transaction_type = 'deposit' AND t.id = ANY (ids)
    UNION ALL
    SELECT 'payout:' || p.id, p.merchant_id, p.status::text, p.reversed_at IS NOT NULL
    FROM payout p WHERE p.id = ANY (payout_ids)
  )
  SELECT 'events_report_every_change', coalesce(s.merchant_id, events.merchant_id), CASE
    WHEN s.origin IS NULL THEN format('events tell of %s, which is not there', events.origin)
    ELSE format('its events do not tell how %s became %s', s.origin, s.status) END
  FROM events FULL JOIN subject s ON s.origin = events.origin
  WHERE events.origin IS NULL OR events.begun <> 1 OR NOT events.lawful OR events.reversed <> s.back::int
    OR events.net <> hashtext(s.status)
    OR (events.merchant_id, events.merchant_id_too) IS DISTINCT FROM (s.merchant_id, s.merchant_id)
$$;
