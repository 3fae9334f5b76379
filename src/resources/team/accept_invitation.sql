-- Makes the member of an invitation active. An invitation works once: if two calls use it, the second one
-- gets no row.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION accept_invitation(
  invitation bytea,
  hashed_password text,
  member int,
  called text
) RETURNS TABLE (name text, role member_role)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE member_secret SET password_hash = hashed_password, invitation_hash = NULL
  WHERE invitation_hash = invitation AND invitation_expires_at > now();
  IF NOT FOUND THEN RETURN; END IF;
  RETURN QUERY UPDATE team_member t
    SET status = 'active', joined_at = service_now(), name = coalesce(called, t.name)
    WHERE t.id = member AND t.status = 'invited' RETURNING t.name, t.role;
END $$;
