-- The events log is numbered after the commit, so that no number is ever taken by something that may still fail, and
-- writers never wait for one another.

-- An event is added unnumbered and gets its position once; nothing else about it changes.
CREATE FUNCTION guard_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.position IS NULL AND NEW.position IS NOT NULL
     AND (OLD.id, OLD.merchant_id, OLD.type, OLD.data, OLD.created_at)
       IS NOT DISTINCT FROM (NEW.id, NEW.merchant_id, NEW.type, NEW.data, NEW.created_at) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'event %: it happened, and never changes', OLD.id USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER "event_guard" BEFORE UPDATE ON "event" FOR EACH ROW EXECUTE FUNCTION guard_event();
CREATE TRIGGER "event_insert_only" BEFORE DELETE OR TRUNCATE ON "event" FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Numbers up to `take` committed events, in the order of their making, 1, 2, 3, ... per merchant, and wakes every
-- listener of channel `events` with the merchants concerned. Any process may call it at any time: callers take turns.
-- The second statement sees all that was committed before the turn came.
CREATE FUNCTION sequence_events(take int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  merchants int[];
  numbered_count int;
BEGIN
  PERFORM pg_advisory_xact_lock(72707370);
  WITH fresh AS (
    SELECT e.id, e.merchant_id FROM event e WHERE e.position IS NULL ORDER BY e.id LIMIT take
  ), numbered AS (
    SELECT id, merchant_id, row_number() OVER (PARTITION BY merchant_id ORDER BY id) AS nth FROM fresh
  ), head AS (
    INSERT INTO stream_head AS h (merchant_id, position)
    SELECT merchant_id, max(nth) FROM numbered GROUP BY merchant_id ORDER BY merchant_id
    ON CONFLICT (merchant_id) DO UPDATE SET position = h.position + excluded.position
    RETURNING h.merchant_id, h.position
  ), placed AS (
    UPDATE event e
    SET position = head.position - total.count + numbered.nth
    FROM numbered JOIN head USING (merchant_id)
      JOIN (SELECT merchant_id, count(*) AS count FROM numbered GROUP BY merchant_id) total USING (merchant_id)
    WHERE e.id = numbered.id
    RETURNING e.merchant_id
  )
  SELECT array_agg(DISTINCT merchant_id), count(*) INTO merchants, numbered_count FROM placed;
  IF numbered_count > 0 THEN
    -- A notice holds 8,000 bytes; a longer list means "look at all of yours".
    PERFORM pg_notify('events', CASE WHEN cardinality(merchants) <= 500 THEN array_to_string(merchants, ',') ELSE '*' END);
  END IF;
  RETURN numbered_count;
END $$;

REVOKE EXECUTE ON FUNCTION guard_event, sequence_events FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sequence_events TO payments_service;
