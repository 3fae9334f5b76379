-- Refuses a change of status that the lifecycle does not allow (`lifecycle_move`). The argument of the
-- trigger names the lifecycle. Nested loops are off, so that a statement with many rows does not compare each
-- old row with each new row.
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

CREATE OR REPLACE TRIGGER "batch_moved" AFTER UPDATE
  ON "batch" REFERENCING NEW TABLE AS inserted OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION guard_status('batch');

CREATE OR REPLACE TRIGGER "batch_recipient_moved" AFTER UPDATE
  ON "batch_recipient" REFERENCING NEW TABLE AS inserted OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION guard_status('recipient');

CREATE OR REPLACE TRIGGER "transaction_moved" AFTER UPDATE
  ON "transaction" REFERENCING NEW TABLE AS inserted OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION guard_status('transaction');

CREATE OR REPLACE TRIGGER "payout_moved" AFTER UPDATE
  ON "payout" REFERENCING NEW TABLE AS inserted OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION guard_status('payout');
