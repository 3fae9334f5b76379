-- Changes the fields of a beneficiary whose arguments are not null, as the database role of merchants, under
-- row-level security. Where `account_was` and `method_was` are given, it changes the beneficiary only if it
-- still has these values. @returns null where nothing was changed
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION update_beneficiary(
  merchant int,
  beneficiary_id int,
  called text,
  given_account text,
  method payout_method,
  kind beneficiary_category,
  active boolean,
  at timestamptz,
  account_was text,
  method_was payout_method
) RETURNS boolean
LANGUAGE sql SET search_path = public, pg_temp AS $$
  UPDATE beneficiary SET name = coalesce(called, name), account = coalesce(given_account, account),
    payment_method = coalesce(method, payment_method), category = coalesce(kind, category),
    is_active = coalesce(active, is_active), updated_at = at
  WHERE id = beneficiary_id AND merchant_id = merchant AND coalesce(account = account_was, true)
    AND coalesce(payment_method = method_was, true)
  RETURNING true
$$;
