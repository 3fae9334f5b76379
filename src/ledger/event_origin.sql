-- What an event is about, as movements name it (`transaction:12`). Null where it is about no payment.
CREATE OR REPLACE FUNCTION event_origin(data jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN data ? 'transaction_id' THEN 'transaction:' || (data->>'transaction_id')
    WHEN data ? 'payout_id' THEN 'payout:' || (data->>'payout_id')
    WHEN data ? 'batch_id' THEN 'batch:' || (data->>'batch_id') END
$$;

REVOKE EXECUTE ON FUNCTION event_origin FROM PUBLIC;
GRANT EXECUTE ON FUNCTION event_origin TO payments_merchant;
GRANT EXECUTE ON FUNCTION event_origin TO payments_service;

-- The proof looks for the events of a payment by its movements' cause.
CREATE INDEX IF NOT EXISTS "event_origin" ON "event" (event_origin("data"));
