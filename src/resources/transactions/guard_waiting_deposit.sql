-- Lets a waiting deposit go on only after its approval.
CREATE OR REPLACE FUNCTION guard_waiting_deposit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM deposit_approval a WHERE a.transaction_id = NEW.id AND a.approval = 'approved')
    THEN RETURN NEW; END IF;
  RAISE EXCEPTION 'deposit %: it is not approved', NEW.id USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE OR REPLACE TRIGGER "transaction_waiting" BEFORE UPDATE OF "status" ON "transaction" FOR EACH ROW WHEN (
  OLD.transaction_type = 'deposit' AND OLD.status = 'pending' AND NEW.status NOT IN ('pending', 'cancelled'))
  EXECUTE FUNCTION guard_waiting_deposit();
