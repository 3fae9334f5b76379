-- Does the same as `guard_approval`, for a table whose primary key is not `id`.
CREATE OR REPLACE FUNCTION guard_deposit_approval() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  IF approvals_of(approvable_of(NEW)) < NEW.approvals_required THEN
    RAISE EXCEPTION 'deposit %: fewer than % people approved it', NEW.transaction_id, NEW.approvals_required
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = TG_NAME;
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER "deposit_approvals" BEFORE UPDATE OF "approval" ON "deposit_approval" FOR EACH ROW
  WHEN (OLD.approval <> 'approved' AND NEW.approval = 'approved') EXECUTE FUNCTION guard_deposit_approval();
