-- Refuses every change of an event.
CREATE OR REPLACE FUNCTION guard_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'event %: an event cannot be changed', OLD.id
    USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE OR REPLACE TRIGGER "event_guard" BEFORE UPDATE ON "event" FOR EACH ROW
  EXECUTE FUNCTION guard_event();
