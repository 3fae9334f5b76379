-- What the log keeps of a deposit that is made, waits, or is let go.
CREATE OR REPLACE FUNCTION deposit_told(transaction, was text, approval approval_status) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT deposit_told($1, was, approval::text)
$$;

-- What the log keeps of a deposit that is made, waits, or is let go.
CREATE OR REPLACE FUNCTION deposit_told(transaction, was text, approval text) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'transaction_id', $1.id, 'reference', $1.reference, 'amount', $1.amount, 'currency', 'XOF',
    'payment_method', $1.payment_method, 'customer_phone', $1.customer_phone, 'status', $1.status,
    'previous_status', was, 'refund_of', $1.refund_of_id, 'approval', approval))
$$;

REVOKE EXECUTE ON FUNCTION deposit_told(transaction,text,approval_status),
  deposit_told(transaction,text,text) FROM PUBLIC;
