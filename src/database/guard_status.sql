-- Each moves along its lifecycle only (the argument), and what it is about never changes; a draft may still
-- grow.
CREATE OR REPLACE FUNCTION guard_status() RETURNS trigger LANGUAGE plpgsql SET enable_nestloop = off AS $$
DECLARE
  moved record;
BEGIN
  SELECT d.id, d.status AS was, i.status AS becomes INTO moved
  FROM deleted d JOIN inserted i USING (id)
  WHERE d.status <> i.status AND (d.status::text, i.status::text) NOT IN (
    SELECT m.from_status, m.to_status FROM public.lifecycle_move m WHERE m.lifecycle = TG_ARGV[0])
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION '% %: % never becomes %', TG_ARGV[0], moved.id, moved.was, moved.becomes
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;

REVOKE EXECUTE ON FUNCTION guard_status FROM PUBLIC;

CREATE OR REPLACE TRIGGER "batch_moved" AFTER UPDATE
  ON "batch" REFERENCING NEW TABLE AS inserted OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION guard_status('batch');

CREATE OR REPLACE TRIGGER "batch_recipient_moved" AFTER UPDATE
  ON "batch_recipient" REFERENCING NEW TABLE AS inserted OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION guard_status('recipient');
