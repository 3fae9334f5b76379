-- Numbers up to `take` events without a position, in the order of their ids: only functions of the previous
-- release still write such events. Then it makes the deliveries that are missing, because processes of the
-- previous release call this function instead of `announce_events`, and a process that died may have left
-- some. The release after this one needs only `make_missing_deliveries`. @returns how many were numbered
CREATE OR REPLACE FUNCTION sequence_events(take int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  numbered_count int := 0;
BEGIN
  IF EXISTS (SELECT FROM event e WHERE e.position IS NULL) THEN
    -- One caller numbers at a time. The next statement sees what the caller before it has numbered.
    PERFORM pg_advisory_xact_lock(72707370);
    WITH fresh AS MATERIALIZED (
      SELECT e.id, e.merchant_id, count(*) OVER merchant AS n,
        row_number() OVER (merchant ORDER BY e.id) AS nth
      FROM (SELECT * FROM event e WHERE e.position IS NULL ORDER BY e.id LIMIT take) AS e
      WINDOW merchant AS (PARTITION BY e.merchant_id)
    ), head AS MATERIALIZED (
      INSERT INTO event_log_position AS h (merchant_id, position)
      SELECT f.merchant_id, f.n FROM fresh f WHERE f.nth = 1 ORDER BY f.merchant_id
      ON CONFLICT (merchant_id) DO UPDATE SET position = h.position + excluded.position
      RETURNING h.merchant_id, h.position
    )
    -- With the ids in an array, PostgreSQL uses the index, even if it takes the table for empty.
    UPDATE event e SET position = h.position - f.n + f.nth FROM fresh f JOIN head h USING (merchant_id)
    WHERE e.id = ANY (ARRAY(SELECT id FROM fresh)) AND e.id = f.id;
    GET DIAGNOSTICS numbered_count = ROW_COUNT;
  END IF;
  PERFORM make_missing_deliveries(take);
  IF numbered_count > 0 THEN PERFORM pg_notify('events', '*'); END IF;
  RETURN numbered_count;
END $$;

REVOKE EXECUTE ON FUNCTION sequence_events FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sequence_events TO payments_service;
