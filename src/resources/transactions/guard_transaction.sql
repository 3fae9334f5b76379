-- Keeps the facts of a transaction (merchant, amount, number, reference, ...) from ever changing.
CREATE OR REPLACE FUNCTION guard_transaction() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'transaction %: its merchant, amount and other facts never change', OLD.id
    USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE OR REPLACE TRIGGER "transaction_guard" BEFORE UPDATE OF id, merchant_id, transaction_type,
  payment_method, customer_phone, amount, reference, refund_of_id, payment_link_id ON "transaction"
    FOR EACH ROW WHEN (
  (OLD.id, OLD.merchant_id, OLD.transaction_type, OLD.payment_method, OLD.customer_phone, OLD.amount,
    OLD.reference, OLD.refund_of_id, OLD.payment_link_id)
  IS DISTINCT FROM
  (NEW.id, NEW.merchant_id, NEW.transaction_type, NEW.payment_method, NEW.customer_phone, NEW.amount,
    NEW.reference, NEW.refund_of_id, NEW.payment_link_id)
) EXECUTE FUNCTION guard_transaction();
