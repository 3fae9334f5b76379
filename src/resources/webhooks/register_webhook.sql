-- Registers an endpoint in the first free slot of the merchant. If another call takes the slot at the same
-- moment, this call looks for a free slot again. A repetition of the same operation returns the endpoint that
-- it made before. Where no slot is free, the id is null.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION register_webhook(
  merchant int,
  endpoint int,
  address text,
  names text[],
  encrypted bytea,
  operation_id text,
  slots int
) RETURNS TABLE (id int, secret_encrypted bytea) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public,
  pg_temp AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  free smallint;
BEGIN
  LOOP
    RETURN QUERY SELECT e.id, e.secret_encrypted FROM webhook_endpoint e
      WHERE e.made_for = operation_id AND e.merchant_id = merchant AND e.removed_at IS NULL;
    IF FOUND THEN RETURN; END IF;
    SELECT min(free_slot) INTO free FROM generate_series(1, slots) AS free_slot
    WHERE NOT EXISTS (SELECT FROM webhook_endpoint e WHERE e.merchant_id = merchant AND e.slot = free_slot);
    IF free IS NULL THEN
      RETURN QUERY SELECT NULL::int, NULL::bytea;
      RETURN;
    END IF;
    RETURN QUERY INSERT INTO webhook_endpoint AS e
        (id, merchant_id, slot, url, events, secret_encrypted, made_for, delivered_to, created_at, updated_at)
      VALUES (endpoint, merchant, free, address, names, encrypted, operation_id, coalesce((
        SELECT h.position FROM event_log_position h WHERE h.merchant_id = merchant), 0), at, at)
      ON CONFLICT DO NOTHING RETURNING e.id, e.secret_encrypted;
    IF FOUND THEN RETURN; END IF;
    -- The endpoint of this operation was removed since: the repetition does not make a new one.
    IF EXISTS (SELECT FROM webhook_endpoint e WHERE e.made_for = operation_id AND e.merchant_id = merchant
      AND e.removed_at IS NOT NULL) THEN
      RETURN;
    END IF;
  END LOOP;
END $$;
