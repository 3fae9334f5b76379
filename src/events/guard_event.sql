-- Refuses every change of an event except one: an event that a function of the previous release wrote without
-- a position gets its position once.
CREATE OR REPLACE FUNCTION guard_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'event %: an event cannot be changed', OLD.id
    USING ERRCODE = 'integrity_constraint_violation';
END $$;

REVOKE EXECUTE ON FUNCTION guard_event FROM PUBLIC;

CREATE OR REPLACE TRIGGER "event_guard" BEFORE UPDATE ON "event" FOR EACH ROW WHEN (NOT (
  OLD.position IS NULL AND NEW.position IS NOT NULL
  AND (OLD.id, OLD.merchant_id, OLD.type, OLD.data, OLD.created_at)
    IS NOT DISTINCT FROM (NEW.id, NEW.merchant_id, NEW.type, NEW.data, NEW.created_at)
)) EXECUTE FUNCTION guard_event();
