-- Keeps every code path from marking a row as approved while it has too few approvals.
CREATE OR REPLACE FUNCTION guard_approval() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  IF approvals_of(approvable_of(NEW)) < NEW.approvals_required THEN
    RAISE EXCEPTION '% %: fewer than % people approved it', TG_TABLE_NAME, NEW.id, NEW.approvals_required
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = TG_NAME;
  END IF;
  RETURN NEW;
END $$;

-- A constraint of `batch` allows the move from `pending_approval` to `processing` only with `approved`;
-- this trigger allows `approved` only with enough approvals.
CREATE OR REPLACE TRIGGER "batch_approvals" BEFORE UPDATE OF "approval" ON "batch" FOR EACH ROW
  WHEN (OLD.approval <> 'approved' AND NEW.approval = 'approved') EXECUTE FUNCTION guard_approval();

CREATE OR REPLACE TRIGGER "payout_approvals" BEFORE UPDATE OF approval ON "payout" FOR EACH ROW
  WHEN (OLD.approval <> 'approved' AND NEW.approval = 'approved') EXECUTE FUNCTION guard_approval();

CREATE OR REPLACE TRIGGER "settings_change_approvals" BEFORE UPDATE OF "approval" ON "settings_change"
  FOR EACH ROW
  WHEN (OLD.approval <> 'approved' AND NEW.approval = 'approved') EXECUTE FUNCTION guard_approval();
