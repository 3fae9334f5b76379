-- The data of a payout's event: the payout as it is, and the status before. The withheld amount is the part
-- that the operator did not confirm.
CREATE OR REPLACE FUNCTION payout_event_data(payout, was payout_status) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'payout_id', $1.id, 'reference', $1.reference, 'amount', coalesce($1.settled_amount, $1.amount),
    'currency', 'XOF', 'payment_method', $1.payment_method, 'destination_phone', $1.destination_phone,
    'status', $1.status, 'previous_status', was, 'approval', $1.approval, 'scheduled_at', $1.scheduled_at,
    'failure_reason', $1.failure_reason, 'beneficiary_id', $1.beneficiary_id,
    'withheld_amount', nullif($1.amount - $1.settled_amount, 0)))
$$;
