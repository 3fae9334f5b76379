-- Refuses a change of a transaction's status that its lifecycle does not have (`lifecycle_move`). Read
-- once per statement, without nested loops.
CREATE OR REPLACE FUNCTION guard_moves() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off AS $$
DECLARE
  moved record;
BEGIN
  SELECT d.id, d.status AS was, i.status INTO moved
  FROM deleted d JOIN inserted i USING (id)
  WHERE i.status <> d.status AND (d.status::text, i.status::text) NOT IN (
    SELECT m.from_status, m.to_status FROM public.lifecycle_move m WHERE m.lifecycle = 'transaction')
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'transaction %: % never becomes %', moved.id, moved.was, moved.status
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;

REVOKE EXECUTE ON FUNCTION guard_moves FROM PUBLIC;

CREATE OR REPLACE TRIGGER "transaction_moved" AFTER UPDATE
  ON "transaction" REFERENCING NEW TABLE AS inserted OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION guard_moves();
