-- Creates an API key of a merchant, or finds the one that the same request created before: `is_new` is false
-- then. Returns no row where there is no such merchant.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION create_api_key(
  merchant int,
  label text,
  granted text[],
  public_half text,
  hash bytea,
  pepper int,
  until timestamptz,
  payment_max bigint,
  day_max bigint,
  methods provider[],
  networks text[],
  issued_to int
) RETURNS TABLE (id int, is_new boolean)
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH made AS (
    INSERT INTO api_key (merchant_id, name, scopes, key, secret_hash, pepper_id, expires_at, max_per_payment,
      max_per_day, payment_methods, addresses, issued_to_id)
    SELECT m.id, label, granted, public_half, hash, pepper, until, payment_max, day_max, methods, networks,
      issued_to
    FROM merchant m WHERE m.id = merchant
    ON CONFLICT (key) DO NOTHING RETURNING id)
  SELECT made.id, true FROM made
  UNION ALL SELECT k.id, false FROM api_key k WHERE k.key = public_half AND k.merchant_id = merchant
$$;
