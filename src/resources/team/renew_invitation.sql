-- Replaces the invitation of a member who has not joined: the earlier one stops working. `inviter` is null
-- for the platform and for a program. Corrects the name, and the role unless `given_role` is null. @returns
-- the role; null where the member joined meanwhile
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION renew_invitation(
  member int,
  called text,
  given_role member_role,
  inviter int,
  invitation bytea,
  lifetime_ms int
) RETURNS member_role
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  renewed member_role;
BEGIN
  -- In the order of accept_invitation, so that the two do not deadlock.
  UPDATE member_secret
  SET invitation_hash = invitation, invitation_expires_at = now() + lifetime_ms * interval '1 millisecond',
    invited_by_id = inviter
  WHERE member_id = member;
  UPDATE team_member t SET name = called, role = coalesce(given_role, t.role)
  WHERE t.id = member AND t.status = 'invited' RETURNING t.role INTO renewed;
  RETURN renewed;
END $$;
