-- Returns a merchant's balances before the entries of a moment, and the sums of all changes until then that
-- raised and lowered `available + reserved`. `infinity` stands for the present.
-- Granted to payments_service and payments_merchant.
CREATE OR REPLACE FUNCTION balance_before(merchant int, moment timestamptz) RETURNS TABLE (
  available bigint,
  reserved bigint,
  receivable bigint,
  total_in bigint,
  total_out bigint
)
LANGUAGE sql STABLE AS $$
  SELECT * FROM balance_before_entry(merchant, moment, 0)
$$;
