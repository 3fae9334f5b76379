-- Whether a credential may still act. It takes the lock for which a statement that ends access waits. An
-- empty `address` is not checked.
CREATE OR REPLACE FUNCTION may_act(
  merchant int,
  credential int,
  credential_version int,
  address text DEFAULT ''
)
RETURNS boolean LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(72707373, merchant);
  RETURN EXISTS (
    SELECT FROM credential k JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
    WHERE k.id = credential AND k.merchant_id = merchant AND k.version = credential_version
      AND k.revoked_at IS NULL
      AND (address = '' OR whitelist_allows(m.ip_whitelist, address)) IS TRUE);
END $$;
