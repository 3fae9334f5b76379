-- Stores the hash of the link with which the owner of a sandbox merchant signs in once. A merchant without an
-- active owner gets one, with this name and address and without a password. Earlier links of the merchant
-- stop working. @returns the owner, and whether it was added now; no row where the account is not active, or
-- where the address belongs to a member who is no owner
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION offer_sign_in_link(
  merchant int,
  called text,
  address text,
  token_hash bytea,
  lifetime_ms int
) RETURNS TABLE (owner int, is_new boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  added int;
BEGIN
  IF NOT EXISTS (SELECT FROM merchant m WHERE m.id = merchant AND m.status = 'active') THEN RETURN; END IF;
  IF NOT EXISTS (
    SELECT FROM team_member t
    WHERE t.merchant_id = merchant AND t.role = 'owner' AND t.status = 'active') THEN
    -- Two nodes may start at once: the second waits here until the first has added the owner, and finds it.
    INSERT INTO team_member (merchant_id, name, email, role, status, created_at, joined_at, approver_since)
    VALUES (merchant, called, address, 'owner', 'active', service_now(), service_now(), service_now())
    ON CONFLICT DO NOTHING RETURNING id INTO added;
    INSERT INTO member_secret (member_id, merchant_id) SELECT added, merchant WHERE added IS NOT NULL;
  END IF;
  owner := (
    SELECT t.id FROM team_member t
    WHERE t.merchant_id = merchant AND t.role = 'owner' AND t.status = 'active'
    ORDER BY t.email = address DESC, t.id LIMIT 1);
  IF owner IS NULL THEN RETURN; END IF;
  is_new := added IS NOT NULL;
  UPDATE member_secret s SET sign_in_hash = NULL
  WHERE s.merchant_id = merchant AND s.sign_in_hash IS NOT NULL;
  UPDATE member_secret s
  SET sign_in_hash = token_hash, sign_in_expires_at = now() + lifetime_ms * interval '1 millisecond'
  WHERE s.member_id = owner;
  RETURN NEXT;
END $$;
