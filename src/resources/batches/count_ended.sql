-- Adds ended recipients to the counts of batches that the caller has locked. The last recipient ends its
-- batch. Each batch gets one event.
CREATE OR REPLACE FUNCTION count_ended(
  batch_ids int[],
  succeeded int[],
  failed int[],
  paid bigint[],
  at timestamptz
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  events new_event[];
BEGIN
  WITH counted AS MATERIALIZED (
    SELECT b.id, b.succeeded_count + i.succeeded AS succeeded, b.failed_count + i.failed AS failed,
      b.paid_amount + i.paid AS paid, b.processing_count - i.succeeded - i.failed AS processing,
      b.succeeded_count + i.succeeded + b.failed_count + i.failed + b.cancelled_count = b.recipient_count
        AS is_last
    FROM unnest(batch_ids, succeeded, failed, paid) AS i (id, succeeded, failed, paid) JOIN batch b
      ON b.id = i.id
    WHERE b.id = ANY (batch_ids)
  ), changed AS (
    UPDATE batch b
    SET processing_count = c.processing, succeeded_count = c.succeeded, failed_count = c.failed,
      paid_amount = c.paid, status = CASE WHEN NOT c.is_last THEN b.status
        WHEN b.cancel_requested_at IS NOT NULL THEN 'cancelled'
        WHEN c.failed = 0 THEN 'completed'
        WHEN c.succeeded = 0 THEN 'failed'
        ELSE 'partially_completed' END::batch_status,
      processed_at = CASE WHEN c.is_last THEN at END
    FROM counted c WHERE b.id = ANY (batch_ids) AND b.id = c.id
    RETURNING b.*, b AS self
  )
  SELECT array_agg((c.merchant_id, CASE WHEN c.processed_at IS NULL THEN 'batch_progress'
    ELSE 'bulk_pay_done' END, batch_event_data(c.self, 'processing'))::new_event ORDER BY c.id)
    INTO events FROM changed c;
  PERFORM append_events(events, at);
END $$;
