-- Writes the due rows of new requests, so that the service finds the requests when they are due.
CREATE OR REPLACE FUNCTION queue_requests() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO request_due (request_id, merchant_id, provider, at)
  SELECT a.id, a.merchant_id, a.provider, a.next_check_at FROM asked a WHERE a.next_check_at IS NOT NULL
  ORDER BY a.id;
  RETURN NULL;
END $$;

REVOKE EXECUTE ON FUNCTION queue_requests FROM PUBLIC;

CREATE OR REPLACE TRIGGER operator_request_queue_new AFTER INSERT ON operator_request
  REFERENCING NEW TABLE AS asked FOR EACH STATEMENT EXECUTE FUNCTION queue_requests();

-- The first time, this writes the due rows of all earlier requests. The migration cannot do that: until the
-- triggers exist, processes of the previous release make requests without due rows. The triggers (this one
-- and that of queue_earlier.sql, which is applied before) lock the table, so that no request is missed.
DO $$
BEGIN
  IF to_regclass('public.operator_request_due') IS NOT NULL THEN
    INSERT INTO request_due (request_id, merchant_id, provider, at)
    SELECT id, merchant_id, provider, next_check_at FROM operator_request WHERE next_check_at IS NOT NULL
    ON CONFLICT (request_id) DO NOTHING;
    DROP INDEX operator_request_due;
  END IF;
END $$;
