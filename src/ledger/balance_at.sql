-- Returns a merchant's balances before the entries of a moment, and the present time.
-- Granted to payments_service and payments_merchant.
CREATE OR REPLACE FUNCTION balance_at(merchant int, moment timestamptz) RETURNS TABLE (
  available bigint,
  reserved bigint,
  receivable bigint,
  read_at timestamptz
)
LANGUAGE sql STABLE AS $$
  SELECT s.available, s.reserved, s.receivable, service_now()
  FROM merchant_balance b, balance_before(b.merchant_id, moment) AS s
  WHERE b.merchant_id = merchant
$$;
