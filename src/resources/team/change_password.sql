-- Sets the password of a member, and ends the member's sessions except `kept`. Links that were made before
-- stop working.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION change_password(member int, hashed_password text, kept int) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE member_secret SET password_hash = hashed_password, reset_hash = NULL, sign_in_hash = NULL
  WHERE member_id = member;
  SELECT end_sessions(member, kept)
$$;
