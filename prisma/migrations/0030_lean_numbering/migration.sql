-- Written by hand: the tables stay as they are.

-- Numbering makes the deliveries of what it numbers, in one transaction, at no cost that shows to merchants without an
-- endpoint: what deliveries are made from is computed for the others alone.

-- Makes the deliveries of what was numbered last, of which the merchant of each is given: one for each endpoint that names
-- its type. Also for those that are not active: what happens meanwhile waits.
CREATE FUNCTION make_deliveries(merchants int[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  at timestamptz := service_now();
  endpoints int[];
BEGIN
  PERFORM FROM webhook_endpoint w WHERE w.merchant_id = ANY (merchants) AND w.slot IS NOT NULL ORDER BY w.id FOR NO KEY UPDATE;
  WITH made AS (
    INSERT INTO webhook_delivery (merchant_id, endpoint_id, position, type, created_at)
    SELECT e.merchant_id, w.id, e.position, e.type, at
    FROM (SELECT merchant_id, count(*) AS n FROM unnest(merchants) AS merchant_id GROUP BY merchant_id) AS m
    JOIN webhook_endpoint w ON w.merchant_id = m.merchant_id AND w.slot IS NOT NULL
    JOIN stream_head h ON h.merchant_id = m.merchant_id
    JOIN event e ON e.merchant_id = m.merchant_id AND e.position > h.position - m.n AND e.type = ANY (w.events)
    ORDER BY w.id, e.position
    RETURNING endpoint_id
  )
  SELECT array_agg(DISTINCT endpoint_id) INTO endpoints FROM made;
  IF endpoints IS NOT NULL THEN PERFORM wake_webhooks(endpoints); END IF;
END $$;

-- As before, and one look at the endpoints of those concerned.
CREATE OR REPLACE FUNCTION sequence_events(take int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
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
    INSERT INTO stream_head AS h (merchant_id, position)
    SELECT merchant_id, count(*) FROM fresh GROUP BY merchant_id ORDER BY merchant_id
    ON CONFLICT (merchant_id) DO UPDATE SET position = h.position + excluded.position
    RETURNING h.merchant_id, h.position
  ), numbered AS (
    SELECT id, max(last_position) OVER (PARTITION BY merchant_id)
      - count(id) OVER (PARTITION BY merchant_id ORDER BY id DESC ROWS UNBOUNDED PRECEDING) + 1 AS position
    FROM (
      SELECT id, merchant_id, NULL::bigint AS last_position FROM fresh
      UNION ALL SELECT NULL, merchant_id, position FROM head
    ) AS either
  ), placed AS (
    UPDATE event e SET position = numbered.position FROM numbered WHERE e.id = numbered.id
    RETURNING e.merchant_id
  )
  SELECT array_agg(DISTINCT merchant_id), array_agg(merchant_id), count(*) INTO merchants, each, numbered_count FROM placed;
  IF numbered_count > 0 THEN
    IF EXISTS (SELECT FROM webhook_endpoint w WHERE w.merchant_id = ANY (merchants) AND w.slot IS NOT NULL) THEN
      PERFORM make_deliveries(each);
    END IF;
    -- A notice holds 8,000 bytes; a longer list means "look at all of yours".
    PERFORM pg_notify('events', CASE WHEN cardinality(merchants) <= 500 THEN array_to_string(merchants, ',') ELSE '*' END);
  END IF;
  RETURN numbered_count;
END $$;

REVOKE EXECUTE ON FUNCTION make_deliveries FROM PUBLIC;
