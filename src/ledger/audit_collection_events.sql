-- Proves that the events of collections report each change of status once. `audit_collections` calls this
-- function with its own planner settings.
CREATE OR REPLACE FUNCTION audit_collection_events(ids bigint[], origins text[], changes text[])
RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE sql STABLE AS $$
  -- Each event adds the hash of its status and subtracts the hash of the status before. If no event is
  -- missing or doubled, the hashes cancel out, except for the hash of the last status (`net`).
  WITH lawful AS MATERIALIZED (
    SELECT event_of(m.to_status) AS type, m.from_status AS was, m.to_status AS status
    FROM lifecycle_move m WHERE m.lifecycle = 'transaction'
    UNION ALL SELECT 'payment_pending', '', 'pending'
    -- The operator took a payment back after refunds had given all of it back.
    UNION ALL SELECT 'payment_reversed', 'reversed', 'reversed'
  ), events AS (
    SELECT c.transaction_id, min(c.merchant_id) AS merchant_id, max(c.merchant_id) AS merchant_id_too,
      count(*) FILTER (WHERE c.was = '') AS begun,
      bool_and(((c.type, c.was, c.status) IN (SELECT l.type, l.was, l.status
        FROM lawful l)) IS TRUE) AS lawful,
      sum(hashtext(c.status)::bigint - CASE c.was WHEN '' THEN 0 ELSE hashtext(c.was) END) AS net
    FROM (
      SELECT e.id, e.merchant_id, e.type, transaction_of(event_origin(e.data)) AS transaction_id,
        e.data->>'status' AS status, coalesce(e.data->>'previous_status', '') AS was
      FROM event e WHERE event_origin(e.data) = ANY (origins) AND e.type = ANY (changes)
      OFFSET 0
    ) c GROUP BY c.transaction_id
  )
  SELECT 'events_report_every_change', coalesce(t.merchant_id, events.merchant_id), CASE
    WHEN t.id IS NULL THEN format('events tell of transaction:%s, which is not there', events.transaction_id)
    ELSE format('its events do not tell how transaction:%s became %s', t.id, t.status) END
  FROM events FULL JOIN (
    SELECT * FROM transaction WHERE transaction_type = 'pay' AND id = ANY (ids)
  ) t ON t.id = events.transaction_id
  WHERE events.transaction_id IS NULL OR events.begun <> 1 OR NOT events.lawful
    OR events.net <> hashtext(t.status::text)
    OR (events.merchant_id, events.merchant_id_too) IS DISTINCT FROM (t.merchant_id, t.merchant_id)
$$;
