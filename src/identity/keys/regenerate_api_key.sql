-- Replaces both halves of an API key, once per request: `is_new` is false where the key already has this
-- public half. Returns no row where the merchant has no such key, or it was revoked.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION regenerate_api_key(
  merchant int,
  api_key_id int,
  public_half text,
  hash bytea,
  pepper int,
  issued_to int
) RETURNS TABLE (id int, is_new boolean)
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH made AS (
    UPDATE api_key SET key = public_half, secret_hash = hash, pepper_id = pepper, version = version + 1,
      issued_to_id = issued_to, suspended_at = NULL
    WHERE id = api_key_id AND merchant_id = merchant AND revoked_at IS NULL AND key <> public_half
    RETURNING id)
  SELECT made.id, true FROM made
  UNION ALL SELECT k.id, false FROM api_key k
    WHERE k.id = api_key_id AND k.merchant_id = merchant AND k.revoked_at IS NULL AND k.key = public_half
$$;
