-- Claims the operator's reference in the evidence of a request: another request of the operator has it never
-- again. The primary key refuses the second one, with all that its outcome would have moved.
CREATE OR REPLACE FUNCTION claim_operator_reference() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO operator_reference (provider, reference, request_id)
  SELECT NEW.provider, NEW.evidence->>'operatorRef', NEW.id
  WHERE NOT EXISTS (
    SELECT FROM operator_reference o
    WHERE o.reference = NEW.evidence->>'operatorRef' AND o.provider = NEW.provider AND o.request_id = NEW.id);
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER "operator_request_reference" AFTER UPDATE OF evidence ON "operator_request"
  FOR EACH ROW
  WHEN (NEW.evidence->>'operatorRef' IS NOT NULL
    AND NEW.evidence->>'operatorRef' IS DISTINCT FROM OLD.evidence->>'operatorRef')
  EXECUTE FUNCTION claim_operator_reference();
