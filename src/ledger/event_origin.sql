-- Returns the origin that an event is about, as ledger entries name it (`transaction:12`); null where the
-- event is about no payment.
-- Granted to payments_service and payments_merchant.
CREATE OR REPLACE FUNCTION event_origin(data jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN data ? 'transaction_id' THEN 'transaction:' || (data->>'transaction_id')
    WHEN data ? 'payout_id' THEN 'payout:' || (data->>'payout_id')
    WHEN data ? 'batch_id' THEN 'batch:' || (data->>'batch_id') END
$$;

-- The proof finds the events of a payment by the origin of its ledger entries.
CREATE INDEX IF NOT EXISTS "event_origin" ON "event" (event_origin("data"));
