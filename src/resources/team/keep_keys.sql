-- Hands API keys that were shown to `member`, who is then removed, over to the member behind `actor`. This
-- keeper is the signed-in member, or the member who was shown the calling API key. `outcome` is `kept`;
-- `no_person` where there is no keeper or `member` is the keeper; `unknown` where one of the keys is not
-- valid or was not shown to `member`: `ordinal` is then its number, from 1. Only `kept` writes.
-- Granted to payments_service.
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
