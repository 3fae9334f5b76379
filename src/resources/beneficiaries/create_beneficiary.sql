-- Saves a beneficiary of the caller's merchant, as the database role of merchants, under row-level security.
-- @returns its id; null where an earlier try of the same request created the beneficiary
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION create_beneficiary(
  merchant int,
  called text,
  given_account text,
  method payout_method,
  kind beneficiary_category,
  operation_id text,
  at timestamptz
) RETURNS int
LANGUAGE sql SET search_path = public, pg_temp AS $$
  INSERT INTO beneficiary (merchant_id, name, account, payment_method, category, made_for, created_at,
    updated_at)
  VALUES (merchant, called, given_account, method, kind, operation_id, at, at) ON CONFLICT DO NOTHING
    RETURNING id
$$;
