-- Marks the code of a time step, and the codes of all steps before it, as used. @returns null where the step
-- was used already, or where the secret has changed in the meantime
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION use_totp_step(member int, step bigint, encrypted bytea) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE member_secret SET totp_step = step
  WHERE member_id = member AND totp_step < step AND totp_encrypted = encrypted RETURNING true
$$;
