-- The scopes that an API key may keep while it is known to a member of a role. A viewer changes nothing, and
-- a key has no scope that only reads.
CREATE OR REPLACE FUNCTION key_scopes_of(role member_role) RETURNS text[] LANGUAGE sql IMMUTABLE
  SET search_path = public, pg_temp AS $$
  SELECT CASE role
    WHEN 'viewer' THEN '{}'
    WHEN 'finance' THEN '{pay,deposit,balance,payout,payment_links,beneficiaries,bulk_pay}'
    ELSE '{pay,deposit,balance,payout,payment_links,beneficiaries,bulk_pay,team,webhooks,settings}'
    END::text[]
$$;

REVOKE EXECUTE ON FUNCTION key_scopes_of FROM PUBLIC;
