-- Refuses an audit head at a position that is not beyond the old one: a chain only grows.
CREATE OR REPLACE FUNCTION guard_audit_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.merchant_id = OLD.merchant_id AND NEW.position > OLD.position THEN RETURN NEW; END IF;
  RAISE EXCEPTION 'audit head of merchant %: a chain only grows', OLD.merchant_id
    USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE OR REPLACE TRIGGER "audit_head_guard" BEFORE UPDATE ON "audit_head" FOR EACH ROW
  EXECUTE FUNCTION guard_audit_head();
