-- Creates a payment link. @returns its id; null where an earlier try of the same request created the link
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION create_payment_link(
  merchant int,
  title text,
  description text,
  amount bigint,
  slug text,
  usage_limit int,
  expires_at timestamptz,
  operation_id text,
  at timestamptz
) RETURNS int LANGUAGE sql SET search_path = public, pg_temp AS $$
  INSERT INTO payment_link (merchant_id, title, description, amount, url_slug, usage_limit, expires_at,
    made_for, created_at, updated_at)
  VALUES (merchant, title, description, amount, slug, usage_limit, expires_at, operation_id, at, at)
  ON CONFLICT (made_for, merchant_id) DO NOTHING
  RETURNING id
$$;
