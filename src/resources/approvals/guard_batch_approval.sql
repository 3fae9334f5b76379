-- Refuses a move of a batch's approval that its lifecycle does not have (`lifecycle_move`), but for the
-- one with which a draft begins to wait.
CREATE OR REPLACE FUNCTION guard_batch_approval() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (OLD.approval, NEW.approval) = ('not_required', 'pending') AND OLD.status = 'draft'
    THEN RETURN NEW; END IF;
  IF EXISTS (
    SELECT FROM public.lifecycle_move m
    WHERE m.lifecycle = 'approval' AND m.from_status = OLD.approval::text AND m.to_status = NEW.approval::text
  ) THEN RETURN NEW; END IF;
  RAISE EXCEPTION 'batch %: % (approval) never becomes %', OLD.id, OLD.approval, NEW.approval
    USING ERRCODE = 'integrity_constraint_violation';
END $$;

REVOKE EXECUTE ON FUNCTION guard_batch_approval FROM PUBLIC;

CREATE OR REPLACE TRIGGER "batch_approval" BEFORE UPDATE OF "approval" ON "batch" FOR EACH ROW
  WHEN (OLD.approval <> NEW.approval)
  EXECUTE FUNCTION guard_batch_approval();
