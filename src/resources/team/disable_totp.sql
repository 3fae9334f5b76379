-- Ends the second factor of a member. @returns whether there was one
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION disable_totp(member int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE team_member SET second_factor_at = NULL WHERE id = member AND second_factor_at IS NOT NULL;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE member_secret SET totp_encrypted = NULL, recovery_hashes = '{}' WHERE member_id = member;
  RETURN true;
END $$;
