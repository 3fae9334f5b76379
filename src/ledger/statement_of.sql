-- Returns a merchant's balances before the entries of two moments, and the sums of the changes in between
-- that raised and lowered `available + reserved`. Without an end: until now, the entries of this millisecond
-- included; then `is_running` says whether the closing is the running balance.
-- Granted to payments_service and payments_merchant.
CREATE OR REPLACE FUNCTION statement_of(merchant int, since timestamptz, upto timestamptz) RETURNS TABLE (
  ends_at timestamptz,
  opening_available bigint,
  opening_reserved bigint,
  opening_receivable bigint,
  closing_available bigint,
  closing_reserved bigint,
  closing_receivable bigint,
  total_in bigint,
  total_out bigint,
  is_running boolean
)
LANGUAGE sql STABLE AS $$
  SELECT coalesce(upto, service_now()::timestamptz(3) + interval '1 millisecond'),
    o.available, o.reserved, o.receivable,
    c.available, c.reserved, c.receivable, c.total_in - o.total_in, c.total_out - o.total_out,
    (b.available, b.reserved, b.receivable) = (c.available, c.reserved, c.receivable)
  FROM merchant_balance b, balance_before(b.merchant_id, since) AS o,
    balance_before(b.merchant_id, coalesce(upto, 'infinity')) AS c
  WHERE b.merchant_id = merchant
$$;
