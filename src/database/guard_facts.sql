-- Refuses an update. The triggers below call it for columns that never change, or that may not change any
-- more in the present status.
CREATE OR REPLACE FUNCTION guard_facts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% %: this update is not allowed', TG_TABLE_NAME, OLD.id
    USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE OR REPLACE TRIGGER "batch_guard" BEFORE UPDATE ON "batch" FOR EACH ROW WHEN (
  (OLD.id, OLD.merchant_id, OLD.title, OLD.payment_method, OLD.retry_of_id, OLD.maker, OLD.made_for,
    OLD.created_at)
  IS DISTINCT FROM
  (NEW.id, NEW.merchant_id, NEW.title, NEW.payment_method, NEW.retry_of_id, NEW.maker, NEW.made_for,
    NEW.created_at)
  OR OLD.status <> 'draft' AND (OLD.recipient_count, OLD.total_amount, OLD.maker_member_ids, OLD.added_for,
    OLD.approval_digest, OLD.approval_expires_at, OLD.approvals_required, OLD.approval_requested_by,
    OLD.approval_requester_id, OLD.approval_requested_at)
  IS DISTINCT FROM (NEW.recipient_count, NEW.total_amount, NEW.maker_member_ids, NEW.added_for,
    NEW.approval_digest, NEW.approval_expires_at, NEW.approvals_required, NEW.approval_requested_by,
    NEW.approval_requester_id, NEW.approval_requested_at)
) EXECUTE FUNCTION guard_facts();

CREATE OR REPLACE TRIGGER "batch_recipient_guard" BEFORE UPDATE ON "batch_recipient" FOR EACH ROW WHEN (
  (OLD.id, OLD.merchant_id, OLD.batch_id, OLD.name, OLD.account, OLD.amount, OLD.payment_method)
  IS DISTINCT FROM (NEW.id, NEW.merchant_id, NEW.batch_id, NEW.name, NEW.account, NEW.amount,
    NEW.payment_method)
) EXECUTE FUNCTION guard_facts();

CREATE OR REPLACE TRIGGER "batch_recipient_identity" BEFORE UPDATE OF correlation_id ON "batch_recipient"
  FOR EACH ROW
  WHEN (OLD.correlation_id <> NEW.correlation_id) EXECUTE FUNCTION guard_facts();

CREATE OR REPLACE TRIGGER "operator_request_identity" BEFORE UPDATE OF correlation_id ON "operator_request"
  FOR EACH ROW
  WHEN (OLD.correlation_id <> NEW.correlation_id) EXECUTE FUNCTION guard_facts();

CREATE OR REPLACE TRIGGER "payout_identity" BEFORE UPDATE OF correlation_id ON "payout" FOR EACH ROW
  WHEN (OLD.correlation_id <> NEW.correlation_id) EXECUTE FUNCTION guard_facts();

CREATE OR REPLACE TRIGGER "settings_change_guard" BEFORE UPDATE ON "settings_change" FOR EACH ROW WHEN (
  OLD.approval <> 'pending' OR
  (OLD.id, OLD.merchant_id, OLD.before, OLD.after, OLD.approval_digest, OLD.approval_expires_at,
    OLD.approvals_required, OLD.maker_member_id, OLD.created_at)
  IS DISTINCT FROM
  (NEW.id, NEW.merchant_id, NEW.before, NEW.after, NEW.approval_digest, NEW.approval_expires_at,
    NEW.approvals_required, NEW.maker_member_id, NEW.created_at)) EXECUTE FUNCTION guard_facts();

-- The identity of a payment and of its request never changes. The column of `transaction` needs no unique
-- index: the index of `operator_request` refuses a second request with the same identity.
CREATE OR REPLACE TRIGGER "transaction_identity" BEFORE UPDATE OF correlation_id ON "transaction" FOR EACH ROW
  WHEN (OLD.correlation_id <> NEW.correlation_id) EXECUTE FUNCTION guard_facts();
