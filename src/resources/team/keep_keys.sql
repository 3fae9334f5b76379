-- Hands API keys that were shown to a member over to the member on whose behalf `actor` acts, before the
-- first member is removed. `outcome` is `kept`; `no_person` where `actor` acts for no other member; `unknown`
-- where one of the keys is not valid or was not shown to the member: `ordinal` is then its number, from 1.
-- Only `kept` writes.
CREATE OR REPLACE FUNCTION keep_keys(merchant int, member int, actor text, keys int[])
  RETURNS TABLE (outcome text, ordinal int, keeper int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(72707373, merchant);
  keeper := (
    SELECT t.id FROM team_member t
    WHERE t.id = acting_member(merchant, actor) AND t.merchant_id = merchant AND t.status = 'active'
      AND t.id <> member);
  ordinal := (
    SELECT min(i.ordinal) FROM unnest(keys) WITH ORDINALITY AS i (id, ordinal)
    LEFT JOIN api_key k ON k.id = i.id AND k.merchant_id = merchant
      AND k.issued_to_id = member
      AND k.revoked_at IS NULL AND coalesce(k.expires_at > now(), true)
    WHERE k.id IS NULL);
  outcome := CASE WHEN keeper IS NULL THEN 'no_person' WHEN ordinal IS NOT NULL THEN 'unknown'
    ELSE 'kept' END;
  IF outcome = 'kept' THEN
    UPDATE api_key k SET issued_to_id = keeper WHERE k.id = ANY (keys);
  END IF;
  RETURN NEXT;
END $$;

REVOKE EXECUTE ON FUNCTION keep_keys FROM PUBLIC;
GRANT EXECUTE ON FUNCTION keep_keys TO payments_service;
