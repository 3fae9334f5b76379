-- Changes the given fields of a payment link. For a field that can be null, `has_...` says whether it is
-- given. @returns false where the merchant has no such link
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION update_payment_link(
  link int,
  merchant int,
  new_title text,
  active boolean,
  has_description boolean,
  new_description text,
  has_amount boolean,
  new_amount bigint,
  has_limit boolean,
  new_limit int,
  has_expiry boolean,
  new_expiry timestamptz,
  at timestamptz
) RETURNS boolean LANGUAGE sql SET search_path = public, pg_temp AS $$
  WITH changed AS (
    UPDATE payment_link SET title = coalesce(new_title, title), is_active = coalesce(active, is_active),
      description = CASE WHEN has_description THEN new_description ELSE description END,
      amount = CASE WHEN has_amount THEN new_amount ELSE amount END,
      usage_limit = CASE WHEN has_limit THEN new_limit ELSE usage_limit END,
      expires_at = CASE WHEN has_expiry THEN new_expiry ELSE expires_at END, updated_at = at
    WHERE id = link AND merchant_id = merchant
    RETURNING id
  ) SELECT EXISTS (SELECT FROM changed)
$$;
