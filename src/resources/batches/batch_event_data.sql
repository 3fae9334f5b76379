-- Returns the data of an event of a batch. `was`: its previous status.
CREATE OR REPLACE FUNCTION batch_event_data(batch, was batch_status) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'batch_id', $1.id, 'title', $1.title, 'status', $1.status, 'previous_status', was, 'approval',
    $1.approval, 'currency', 'XOF', 'recipient_count', $1.recipient_count, 'processing_count',
    $1.processing_count, 'succeeded_count', $1.succeeded_count, 'failed_count', $1.failed_count,
    'cancelled_count', $1.cancelled_count, 'total_amount', $1.total_amount, 'paid_amount', $1.paid_amount,
      'started_at', $1.started_at))
$$;
