-- Makes API keys that a restore suspended valid again.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION restore_keys() RETURNS void LANGUAGE sql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  UPDATE api_key SET suspended_at = NULL WHERE suspended_at IS NOT NULL
$$;
