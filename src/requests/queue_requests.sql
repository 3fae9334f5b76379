-- Writes the due rows of new requests, so that the service finds the requests when they are due.
CREATE OR REPLACE FUNCTION queue_requests() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO request_due (request_id, merchant_id, provider, at)
  SELECT a.id, a.merchant_id, a.provider, a.next_check_at FROM asked a WHERE a.next_check_at IS NOT NULL
  ORDER BY a.id;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER operator_request_queue_new AFTER INSERT ON operator_request
  REFERENCING NEW TABLE AS asked FOR EACH STATEMENT EXECUTE FUNCTION queue_requests();
