-- Signs a member in: creates the session, ends the member's oldest sessions beyond `most`, and emits the
-- event. @returns the session's id
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION open_session(
  merchant int,
  member int,
  email text,
  address text,
  hours int,
  most int
) RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  opened int;
BEGIN
  INSERT INTO session (merchant_id, member_id, expires_at, last_used_at, last_used_from)
  VALUES (merchant, member, now() + hours * interval '1 hour', now(), address) RETURNING id INTO opened;
  UPDATE session SET revoked_at = now() WHERE id IN (
    SELECT s.id FROM session s
    WHERE s.member_id = member AND s.revoked_at IS NULL AND s.expires_at > now()
    ORDER BY s.id DESC OFFSET most);
  PERFORM record_access(merchant, 'team_login',
    jsonb_build_object('team_member_id', member, 'email', email, 'ip', address));
  RETURN opened;
END $$;
