-- Makes API keys that a restore suspended valid again.
CREATE OR REPLACE FUNCTION restore_keys() RETURNS void LANGUAGE sql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  UPDATE api_key SET suspended_at = NULL WHERE suspended_at IS NOT NULL
$$;

REVOKE EXECUTE ON FUNCTION restore_keys FROM PUBLIC;
GRANT EXECUTE ON FUNCTION restore_keys TO payments_service;
