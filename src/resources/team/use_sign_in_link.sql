-- Uses the link with which a member signs in once. @returns true; null where another call used the link
-- before, or where it is too old
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION use_sign_in_link(token_hash bytea) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE member_secret SET sign_in_hash = NULL
  WHERE sign_in_hash = token_hash AND sign_in_expires_at > now()
  RETURNING true
$$;
