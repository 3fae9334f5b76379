-- Ends all sessions of a member, except the session `kept` where that is not null.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION end_sessions(member int, kept int) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE session SET revoked_at = now()
  WHERE member_id = member AND id IS DISTINCT FROM kept AND revoked_at IS NULL
$$;
