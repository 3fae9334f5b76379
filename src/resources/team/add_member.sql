-- Adds a member to the team, with the hash of the invitation's token. @returns the id of the new member; null
-- where the team has a member with this address, or the same request added one before
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION add_member(
  merchant int,
  called text,
  address text,
  given_role member_role,
  operation_id text,
  inviter int,
  invitation bytea,
  lifetime_ms int
) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  added int;
BEGIN
  INSERT INTO team_member (merchant_id, name, email, role, made_for, created_at)
  VALUES (merchant, called, address, given_role, operation_id, service_now()) ON CONFLICT DO NOTHING
  RETURNING id INTO added;
  IF added IS NULL THEN RETURN NULL; END IF;
  INSERT INTO member_secret (member_id, merchant_id, invited_by_id, invitation_hash, invitation_expires_at)
  VALUES (added, merchant, inviter, invitation, now() + lifetime_ms * interval '1 millisecond');
  RETURN added;
END $$;
