-- The account for which a credential may act: the credential still has this version and is not revoked, the
-- account is active, and its whitelist allows the address; else no row. The planner inlines the function into
-- the calling statement.
CREATE OR REPLACE FUNCTION account_of_caller(
  merchant int,
  credential int,
  credential_version int,
  address text
) RETURNS SETOF merchant LANGUAGE sql STABLE AS $$
  SELECT m.* FROM credential k JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
  WHERE k.id = credential AND k.merchant_id = merchant AND k.version = credential_version
    AND k.revoked_at IS NULL
    AND whitelist_allows(m.ip_whitelist, address)
  LIMIT 1
$$;
