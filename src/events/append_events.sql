-- Writes events with their positions: no other function writes an event. The lock on the row of
-- `event_log_position` is held until the commit, so that the positions of a merchant have the order of the
-- commits, and a transaction that is rolled back gives its positions back. Callers append their events last
-- and in one call (see docs/design/events.md#the-order-of-locks): a transaction that waits for another lock
-- must not hold this one. The events of one merchant keep the order of the array.
-- The message MP002 names the merchants to the session of the client, which announces the events after the
-- commit (`announcer.ts`). An INFO reaches the client with every `client_min_messages`.
CREATE OR REPLACE FUNCTION append_events(events new_event[], at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  merchants text;
BEGIN
  IF cardinality(events) > 0 THEN
    WITH item AS MATERIALIZED (
      SELECT e.*, row_number() OVER (PARTITION BY e.merchant_id ORDER BY e.ordinal) AS nth,
        count(*) OVER (PARTITION BY e.merchant_id) AS n
      FROM unnest(events) WITH ORDINALITY AS e (merchant_id, type, data, ordinal)
    ), head AS (
      INSERT INTO event_log_position AS h (merchant_id, position)
      SELECT i.merchant_id, i.n FROM item i WHERE i.nth = 1 ORDER BY i.merchant_id
      ON CONFLICT (merchant_id) DO UPDATE SET position = h.position + excluded.position
      RETURNING h.merchant_id, h.position
    ), written AS (
      INSERT INTO event (merchant_id, position, type, data, created_at)
      SELECT i.merchant_id, h.position - i.n + i.nth, i.type, i.data, at
      FROM item i JOIN head h ON h.merchant_id = i.merchant_id ORDER BY i.merchant_id, i.nth
    )
    SELECT string_agg(h.merchant_id::text, ',') INTO merchants FROM head h;
    RAISE INFO USING ERRCODE = 'MP002', MESSAGE = merchants;
  END IF;
END $$;
