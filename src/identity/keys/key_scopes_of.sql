-- The scopes that an API key may keep while a member of this role knows it. A viewer may change nothing, but
-- each scope allows a change (`balance`: a recorded question to an operator); so the key keeps none.
CREATE OR REPLACE FUNCTION key_scopes_of(role member_role) RETURNS text[] LANGUAGE sql IMMUTABLE
  SET search_path = public, pg_temp AS $$
  SELECT CASE role
    WHEN 'viewer' THEN '{}'
    WHEN 'finance' THEN '{pay,deposit,balance,payout,payment_links,beneficiaries,bulk_pay}'
    ELSE '{pay,deposit,balance,payout,payment_links,beneficiaries,bulk_pay,team,webhooks,settings}'
    END::text[]
$$;
