-- Takes the identity from the client reference. The service sends the identity as this reference too, and
-- some operators repeat only the reference.
CREATE OR REPLACE FUNCTION name_orphan() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.client_ref ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
    THEN NEW.correlation_id := NEW.client_ref::uuid; END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER "operator_orphan_named" BEFORE INSERT ON "operator_orphan" FOR EACH ROW
  WHEN (NEW.correlation_id IS NULL)
  EXECUTE FUNCTION name_orphan();
