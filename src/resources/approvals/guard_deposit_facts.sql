-- Refuses every change of the approved facts of a deposit, and of an approval that has ended.
CREATE OR REPLACE FUNCTION guard_deposit_facts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'deposit %: its approved facts and an ended approval never change', OLD.transaction_id
    USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE OR REPLACE TRIGGER "deposit_approval_guard" BEFORE UPDATE ON "deposit_approval" FOR EACH ROW WHEN (
  OLD.approval <> 'pending' OR
  (OLD.transaction_id, OLD.merchant_id, OLD.approval_digest, OLD.approval_expires_at, OLD.approvals_required,
    OLD.maker, OLD.maker_member_id)
  IS DISTINCT FROM
  (NEW.transaction_id, NEW.merchant_id, NEW.approval_digest, NEW.approval_expires_at, NEW.approvals_required,
    NEW.maker, NEW.maker_member_id)) EXECUTE FUNCTION guard_deposit_facts();
