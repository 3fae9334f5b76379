-- Records, for every epoch so far, that the credentials which a restore may have revived are suspended.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION handle_epochs() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE database_epoch SET keys_handled_at = now() WHERE keys_handled_at IS NULL
$$;
