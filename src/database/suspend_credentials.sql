-- Suspends API keys and ends sessions after a restore, at most `most` of each per call, because a call waits
-- for the running payments of their merchants. `lost` lists the credentials whose replacement or end the
-- database lost; those that changed again after `newest` (the last change that the node knows) are left out.
-- If `lost` is null, all credentials are taken that existed when the last unhandled epoch began.
-- @returns whether there may be more
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION suspend_credentials(lost int[], newest bigint, most int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  until int := (SELECT max(e.last_api_key_id) FROM database_epoch e WHERE e.keys_handled_at IS NULL);
  keys int;
  sessions int;
BEGIN
  UPDATE api_key SET version = version + 1000000, suspended_at = now() WHERE id IN (
    SELECT k.id FROM api_key k
    WHERE k.revoked_at IS NULL AND k.suspended_at IS NULL AND CASE WHEN lost IS NULL THEN k.id <= until
      ELSE k.id = ANY (lost)
        AND NOT EXISTS (SELECT FROM credential_change c WHERE c.api_key_id = k.id AND c.id > newest) END
    ORDER BY k.merchant_id, k.id LIMIT most);
  GET DIAGNOSTICS keys = ROW_COUNT;
  UPDATE session SET revoked_at = now() WHERE id IN (
    SELECT s.id FROM session s
    WHERE s.revoked_at IS NULL AND CASE WHEN lost IS NULL THEN s.id <= until
      ELSE s.id = ANY (lost)
        AND NOT EXISTS (SELECT FROM credential_change c WHERE c.api_key_id = s.id AND c.id > newest) END
    ORDER BY s.merchant_id, s.id LIMIT most);
  GET DIAGNOSTICS sessions = ROW_COUNT;
  RETURN greatest(keys, sessions) = most;
END $$;
