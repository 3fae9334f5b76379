-- Sets the password of a member with the token of an e-mail, once, and ends all sessions of the member and
-- the member's sign-in link.
-- @returns false where the token was used, or is too old
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION reset_password(token_hash bytea, hashed_password text, member int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE member_secret SET password_hash = hashed_password, reset_hash = NULL, sign_in_hash = NULL
  WHERE reset_hash = token_hash AND reset_expires_at > now();
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM end_sessions(member, NULL);
  RETURN true;
END $$;
