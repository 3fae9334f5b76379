-- Removes a member from the team and deletes the member's secrets; the trigger `change_member` does the rest.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION remove_member(member int) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE team_member SET status = 'removed', removed_at = service_now(), second_factor_at = NULL
  WHERE id = member;
  UPDATE member_secret SET password_hash = NULL, totp_encrypted = NULL, recovery_hashes = '{}',
    invitation_hash = NULL, reset_hash = NULL, sign_in_hash = NULL
  WHERE member_id = member
$$;
