-- Returns a merchant's transaction with a reference. It runs with the caller's own rights, so that row-level
-- security holds. Because sorting is off, only the unique index on (reference, merchant_id) gives this order.
-- With sorting, a plan made for an empty table would read all transactions of the merchant.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION transaction_by_reference(named text, merchant int) RETURNS TABLE (
  transaction_id bigint,
  reference text,
  amount bigint,
  payment_method provider,
  status transaction_status,
  payment_url text,
  failure_reason text,
  failure_message text,
  initiated_at timestamptz,
  phone text,
  type transaction_type,
  refund_of_id bigint
) LANGUAGE sql STABLE SET search_path = public, pg_temp SET enable_sort = off AS $$
  SELECT t.id, t.reference, t.amount, t.payment_method, t.status, t.payment_url, t.failure_reason,
    t.failure_message, t.created_at, t.customer_phone, t.transaction_type, t.refund_of_id
  FROM transaction t
  WHERE (t.reference, t.merchant_id) BETWEEN (named, merchant) AND (named, merchant)
  ORDER BY t.reference, t.merchant_id
$$;
