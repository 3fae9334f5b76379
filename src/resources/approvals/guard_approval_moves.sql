-- Refuses a change of the state of an approval that the table `lifecycle_move` does not list. One exception:
-- when the draft of a batch begins to wait, its approval goes from `not_required` to `pending`.
CREATE OR REPLACE FUNCTION guard_approval_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (OLD.approval, NEW.approval, OLD.status::text) = ('not_required', 'pending', 'draft')
    THEN RETURN NEW; END IF;
  IF EXISTS (
    SELECT FROM public.lifecycle_move m
    WHERE m.lifecycle = 'approval' AND m.from_status = OLD.approval::text AND m.to_status = NEW.approval::text
  ) THEN RETURN NEW; END IF;
  RAISE EXCEPTION '% %: % (approval) never becomes %', TG_TABLE_NAME, OLD.id, OLD.approval, NEW.approval
    USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE OR REPLACE TRIGGER "batch_approval" BEFORE UPDATE OF "approval" ON "batch" FOR EACH ROW
  WHEN (OLD.approval <> NEW.approval) EXECUTE FUNCTION guard_approval_moves();

CREATE OR REPLACE TRIGGER "payout_approval" BEFORE UPDATE OF "approval" ON "payout" FOR EACH ROW
  WHEN (OLD.approval <> NEW.approval) EXECUTE FUNCTION guard_approval_moves();
