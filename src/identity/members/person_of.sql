-- The person of a session that is neither ended nor expired, and the role that the person has now; no row
-- where an API key calls, or the account refuses the call. A statement that ends the session or changes the
-- role either commits before this function runs, or waits until the caller's transaction has ended
-- (`end_access`).
CREATE OR REPLACE FUNCTION person_of(
  merchant int,
  credential int,
  credential_version int,
  address text DEFAULT ''
)
RETURNS TABLE (member_id int, role member_role) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public,
  pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(72707373, merchant);
  RETURN QUERY
  SELECT t.id, t.role FROM session k
  JOIN team_member t ON t.id = k.member_id AND t.merchant_id = k.merchant_id AND t.status = 'active'
  JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
  WHERE k.id = credential AND k.merchant_id = merchant AND credential_version = 1
    AND k.revoked_at IS NULL AND k.expires_at > now()
    AND (address = '' OR whitelist_allows(m.ip_whitelist, address)) IS TRUE;
END $$;
