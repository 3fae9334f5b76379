-- Numbers up to `take` committed events, in the order of their ids, 1, 2, 3, ... per merchant; creates the
-- deliveries of their webhooks; and notifies channel `events` of the merchants concerned. Any process may
-- call it at any time: an advisory lock lets one caller run at a time. The statement after the lock sees
-- every event that was committed before the lock was granted.
CREATE OR REPLACE FUNCTION sequence_events(take int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  merchants int[];
  each int[];
  numbered_count int;
BEGIN
  PERFORM pg_advisory_xact_lock(72707370);
  WITH fresh AS (
    SELECT e.id, e.merchant_id FROM event e WHERE e.position IS NULL ORDER BY e.id LIMIT take
  ), head AS (
    INSERT INTO event_log_position AS h (merchant_id, position)
    SELECT merchant_id, count(*) FROM fresh GROUP BY merchant_id ORDER BY merchant_id
    ON CONFLICT (merchant_id) DO UPDATE SET position = h.position + excluded.position
    RETURNING h.merchant_id, h.position
  ), numbered AS MATERIALIZED (
    SELECT id, max(last_position) OVER (PARTITION BY merchant_id)
      - count(id) OVER (PARTITION BY merchant_id ORDER BY id DESC ROWS UNBOUNDED PRECEDING) + 1 AS position
    FROM (
      SELECT id, merchant_id, NULL::bigint AS last_position FROM fresh
      UNION ALL SELECT NULL, merchant_id, position FROM head
    ) AS either
  ), positioned AS (
    -- With the ids in an array, PostgreSQL uses the index, even if it takes the table for empty.
    UPDATE event e SET position = numbered.position FROM numbered
    WHERE e.id = ANY (ARRAY(SELECT f.id FROM fresh f)) AND e.id = numbered.id
    RETURNING e.merchant_id
  )
  SELECT array_agg(DISTINCT merchant_id), array_agg(merchant_id), count(*) INTO merchants, each,
    numbered_count FROM positioned;
  IF numbered_count > 0 THEN
    IF EXISTS (SELECT FROM webhook_endpoint w WHERE w.merchant_id = ANY (merchants) AND w.slot IS NOT NULL)
      THEN
      PERFORM make_deliveries(each);
    END IF;
    -- A notification holds less than 8,000 bytes. For more than 500 merchants, `*` tells listeners to check
    -- all their merchants.
    PERFORM pg_notify('events', CASE WHEN cardinality(merchants) <= 500 THEN array_to_string(merchants, ',')
      ELSE '*' END);
  END IF;
  RETURN numbered_count;
END $$;

REVOKE EXECUTE ON FUNCTION sequence_events FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sequence_events TO payments_service;
