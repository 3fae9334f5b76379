-- Keeps the due row of a request at or before the time at which the request is due. A later time changes
-- nothing here: `take_due` moves the due row when it finds that the request is not yet due. The caller has
-- locked the request, and so does every other writer of its due row.
CREATE OR REPLACE FUNCTION queue_earlier() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp SET enable_seqscan = off AS $$
DECLARE
  queued timestamptz := (SELECT d.at FROM request_due d WHERE d.request_id = NEW.id);
BEGIN
  IF queued IS NULL THEN
    INSERT INTO request_due (request_id, merchant_id, provider, at)
    VALUES (NEW.id, NEW.merchant_id, NEW.provider, NEW.next_check_at);
  ELSIF queued > NEW.next_check_at THEN
    UPDATE request_due d SET at = NEW.next_check_at WHERE d.request_id = NEW.id;
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER operator_request_queue_earlier AFTER UPDATE ON operator_request FOR EACH ROW
  WHEN (NEW.next_check_at < coalesce(OLD.next_check_at, 'infinity'))
  EXECUTE FUNCTION queue_earlier();
