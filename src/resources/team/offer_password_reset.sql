-- Stores the hash of the token with which a member may set a new password.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION offer_password_reset(member int, token_hash bytea, lifetime_ms int) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE member_secret
  SET reset_hash = token_hash, reset_expires_at = now() + lifetime_ms * interval '1 millisecond'
  WHERE member_id = member
$$;
