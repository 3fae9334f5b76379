-- Notes in `recipient_call` that the request of a recipient is being sent, until an answer is recorded.
CREATE OR REPLACE FUNCTION follow_recipient_call() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp SET enable_seqscan = off AS $$
BEGIN
  IF NEW.state = 'sending' THEN
    INSERT INTO recipient_call (request_id, merchant_id, recipient_id, provider, fence_until)
    VALUES (NEW.id, NEW.merchant_id, NEW.recipient_id, NEW.provider, NEW.fence_until)
    ON CONFLICT (request_id) DO UPDATE SET fence_until = NEW.fence_until;
  ELSE
    DELETE FROM recipient_call c WHERE c.request_id = NEW.id;
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER operator_request_call_begins AFTER INSERT ON operator_request FOR EACH ROW
  WHEN (NEW.recipient_id IS NOT NULL AND NEW.state = 'sending')
  EXECUTE FUNCTION follow_recipient_call();

CREATE OR REPLACE TRIGGER operator_request_call_ends AFTER UPDATE ON operator_request FOR EACH ROW
  WHEN (NEW.recipient_id IS NOT NULL AND (OLD.state = 'sending' OR NEW.state = 'sending')
    AND (OLD.state, OLD.fence_until) IS DISTINCT FROM (NEW.state, NEW.fence_until))
  EXECUTE FUNCTION follow_recipient_call();
