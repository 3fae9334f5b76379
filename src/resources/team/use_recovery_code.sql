-- Marks a recovery code as used. @returns null where the member does not have this code, or has used it
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION use_recovery_code(member int, code_hash bytea) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE member_secret SET recovery_hashes = array_remove(recovery_hashes, code_hash)
  WHERE member_id = member AND code_hash = ANY (recovery_hashes) RETURNING true
$$;
