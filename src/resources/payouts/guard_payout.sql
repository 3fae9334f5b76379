-- Keeps the facts of a payout (merchant, amount, destination, reference, ...) from ever changing.
CREATE OR REPLACE FUNCTION guard_payout() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'payout %: its merchant, amount and other facts never change', OLD.id
    USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE OR REPLACE TRIGGER "payout_guard" BEFORE UPDATE OF id, merchant_id, payment_method, destination_phone,
  amount, reference, scheduled_at, send_at, approval_digest, approval_expires_at, approvals_required, maker,
  maker_member_id, beneficiary_id, beneficiary_name, request_data, created_at
  ON "payout" FOR EACH ROW WHEN (
  (OLD.id, OLD.merchant_id, OLD.payment_method, OLD.destination_phone, OLD.amount, OLD.reference,
    OLD.scheduled_at, OLD.send_at, OLD.approval_digest, OLD.approval_expires_at, OLD.approvals_required,
    OLD.maker, OLD.maker_member_id, OLD.beneficiary_id, OLD.beneficiary_name, OLD.request_data,
      OLD.created_at)
  IS DISTINCT FROM
  (NEW.id, NEW.merchant_id, NEW.payment_method, NEW.destination_phone, NEW.amount, NEW.reference,
    NEW.scheduled_at, NEW.send_at, NEW.approval_digest, NEW.approval_expires_at, NEW.approvals_required,
    NEW.maker, NEW.maker_member_id, NEW.beneficiary_id, NEW.beneficiary_name, NEW.request_data,
      NEW.created_at)
) EXECUTE FUNCTION guard_payout();
