-- Activates the second factor, with these recovery codes. @returns false where the member has an active one
-- already
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION confirm_totp(member int, code_hashes bytea[]) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE team_member SET second_factor_at = service_now() WHERE id = member AND second_factor_at IS NULL;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE member_secret SET recovery_hashes = code_hashes WHERE member_id = member;
  RETURN true;
END $$;
