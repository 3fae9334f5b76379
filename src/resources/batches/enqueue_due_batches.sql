-- Enqueues the job that sends recipients if a batch has recipients to send, even if they became due while no
-- process ran.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION enqueue_due_batches() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  IF EXISTS (
    SELECT FROM batch b
    WHERE b.status = 'processing' AND b.cancel_requested_at IS NULL
      AND b.processing_count + b.succeeded_count + b.failed_count + b.cancelled_count < b.recipient_count
      AND b.merchant_id NOT IN (SELECT m.id FROM merchant m WHERE m.status <> 'active')
      AND b.merchant_id NOT IN (SELECT o.merchant_id FROM merchant_balance o WHERE o.receivable > 0)
      AND NOT EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL)
  ) THEN PERFORM enqueue_batches(); END IF;
END $$;
