-- Ends a session of the merchant. A repetition changes nothing.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION end_session(merchant int, session_id int) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE session SET revoked_at = now()
  WHERE id = session_id AND merchant_id = merchant AND revoked_at IS NULL
$$;
