-- Refuses a change of a payout's status or approval that its lifecycle does not have (`lifecycle_move`).
CREATE OR REPLACE FUNCTION guard_payout_moves() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  moved record;
BEGIN
  SELECT change.* INTO moved
  FROM deleted d JOIN inserted i USING (id) CROSS JOIN LATERAL (VALUES
    ('payout', d.id, d.status::text, i.status::text), ('approval', d.id, d.approval::text, i.approval::text)
  ) AS change (lifecycle, id, was, becomes)
  WHERE change.was <> change.becomes AND (change.lifecycle, change.was, change.becomes) NOT IN (
    SELECT m.lifecycle, m.from_status, m.to_status FROM public.lifecycle_move m)
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'payout %: % (%) never becomes %', moved.id, moved.was, moved.lifecycle, moved.becomes
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;

REVOKE EXECUTE ON FUNCTION guard_payout_moves FROM PUBLIC;

CREATE OR REPLACE TRIGGER "payout_moved" AFTER UPDATE
  ON "payout" REFERENCING NEW TABLE AS inserted OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION guard_payout_moves();
