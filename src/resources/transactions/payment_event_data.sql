-- The data of a collection's event: the collection as it is, the status before, the excess that the operator
-- reported beyond the requested amount, and the part of the requested amount that was not paid.
CREATE OR REPLACE FUNCTION payment_event_data(transaction, was transaction_status, excess bigint)
  RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'transaction_id', $1.id, 'reference', $1.reference, 'amount', coalesce($1.settled_amount, $1.amount),
    'currency', 'XOF', 'payment_method', $1.payment_method, 'customer_phone', $1.customer_phone,
    'status', $1.status, 'previous_status', was, 'late', $1.late, 'failure_reason', $1.failure_reason,
    'excess', nullif(excess, 0), 'unpaid_amount', nullif($1.amount - $1.settled_amount, 0)))
$$;
