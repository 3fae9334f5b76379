-- Revokes an API key for ever. A repetition changes nothing. @returns null where the merchant has no such key
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION revoke_api_key(merchant int, api_key_id int) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE api_key SET revoked_at = coalesce(revoked_at, now())
  WHERE id = api_key_id AND merchant_id = merchant RETURNING true
$$;
