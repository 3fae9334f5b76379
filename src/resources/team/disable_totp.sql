-- Ends the second factor of a member. @returns whether there was one
CREATE OR REPLACE FUNCTION disable_totp(member int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE team_member SET second_factor_at = NULL WHERE id = member AND second_factor_at IS NOT NULL;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE member_secret SET totp_encrypted = NULL, recovery_hashes = '{}' WHERE member_id = member;
  RETURN true;
END $$;

REVOKE EXECUTE ON FUNCTION disable_totp FROM PUBLIC;
GRANT EXECUTE ON FUNCTION disable_totp TO payments_service;
