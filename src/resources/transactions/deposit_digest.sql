-- The digest that a person approves: merchant, operator, number, amount, refunded collection and reference.
CREATE OR REPLACE FUNCTION deposit_digest(transaction) RETURNS bytea
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT sha256(convert_to(format('deposit:v1|%s|%s|%s|%s|%s|%s', $1.merchant_id, $1.payment_method,
    $1.customer_phone, $1.amount, $1.refund_of_id, $1.reference), 'UTF8'))
$$;
