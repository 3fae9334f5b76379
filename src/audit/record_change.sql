-- Writes the entry of a change, in the transaction that makes it, and records that the entry needs a link.
-- Granted to payments_service and payments_merchant.
CREATE OR REPLACE FUNCTION record_change(recording audit_recording, target text, before jsonb, after jsonb)
  RETURNS void LANGUAGE sql SET search_path = public, pg_temp AS $$
  WITH entry AS (
    INSERT INTO audit_entry (merchant_id, actor, address, request_id, channel, operation, target, before,
      after)
    VALUES (recording.merchant_id, recording.actor, recording.address, recording.request_id,
      recording.channel, recording.operation, target, before, after)
    RETURNING merchant_id, id
  )
  INSERT INTO audit_unchained (merchant_id, entry_id) SELECT merchant_id, id FROM entry
$$;
