-- Cancels the unsent recipients of a batch. One ledger entry makes their reserved money available again.
-- Payments that operators already have end as the operators say, and the batch ends with the last of them.
-- `credential` is checked where it is not null. @returns `moved`: true if this call began the cancellation;
-- null where the credential is not valid
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION cancel_batch(
  merchant int,
  batch int,
  becomes approval_status DEFAULT NULL,
  why jsonb DEFAULT '{}',
  credential int DEFAULT NULL,
  credential_version int DEFAULT NULL,
  address text DEFAULT ''
) RETURNS TABLE (moved boolean, was batch_status, status batch_status) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  going batch;
  before batch_status;
  stopped int;
  freed bigint;
BEGIN
  IF credential IS NOT NULL AND NOT may_act(merchant, credential, credential_version, address) THEN
    RETURN QUERY SELECT NULL::boolean, NULL::batch_status, NULL::batch_status;
    RETURN;
  END IF;
  SELECT b.* INTO going FROM batch b WHERE b.id = $2 AND b.merchant_id = $1 FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  before := going.status;
  IF going.processed_at IS NOT NULL OR going.cancel_requested_at IS NOT NULL THEN
    RETURN QUERY SELECT false, before, before;
    RETURN;
  END IF;
  WITH gone AS (
    UPDATE batch_recipient r SET status = 'cancelled', settled_at = at, evidence_source = 'service'
    WHERE r.batch_id = $2 AND r.sent_at IS NULL AND r.status = 'pending' RETURNING r.amount
  ) SELECT count(*), sum(g.amount) INTO stopped, freed FROM gone g;
  IF before <> 'draft' AND freed > 0 THEN
    PERFORM FROM merchant_balance b WHERE b.merchant_id = $1 FOR UPDATE;
    INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
    VALUES ($1, 'batch:' || $2, 'void', 'reserved', 'available', freed, at);
  END IF;
  UPDATE batch b
  SET cancel_requested_at = at, cancelled_count = stopped, approval = coalesce(becomes, b.approval),
    status = CASE WHEN b.processing_count = 0 THEN 'cancelled' ELSE b.status END,
    processed_at = CASE WHEN b.processing_count = 0 THEN at END
  WHERE b.id = $2 RETURNING b.* INTO going;
  PERFORM append_events(ARRAY[($1, CASE WHEN before <> 'processing' THEN 'batch_cancelled'
    WHEN going.processed_at IS NULL THEN 'batch_progress'
    ELSE 'bulk_pay_done' END, batch_event_data(going, before) || why)::new_event], at);
  RETURN QUERY SELECT true, before, going.status;
END $$;
