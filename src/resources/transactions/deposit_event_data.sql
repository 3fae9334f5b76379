-- The data of a deposit's event: the deposit as it is, the status before, and the state of its approval. The
-- withheld amount is the part that the operator did not confirm.
CREATE OR REPLACE FUNCTION deposit_event_data(transaction, was text, approval text) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'transaction_id', $1.id, 'reference', $1.reference, 'amount', coalesce($1.settled_amount, $1.amount),
    'currency', 'XOF', 'payment_method', $1.payment_method, 'customer_phone', $1.customer_phone,
    'status', $1.status, 'previous_status', was, 'failure_reason', $1.failure_reason,
    'refund_of', $1.refund_of_id, 'approval', approval,
    'withheld_amount', nullif($1.amount - $1.settled_amount, 0)))
$$;
