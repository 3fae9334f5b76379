-- Reserves the money of a draft by one ledger entry, and starts the batch or lets it wait for approvals. A
-- batch that exceeds the limits of the caller is refused. `day_max`: the daily limit of the token; null for
-- no limit.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION process_batch(
  merchant int,
  credential int,
  credential_version int,
  asker text,
  batch int,
  approval_ms bigint,
  connected provider[],
  payment_max bigint,
  operators provider[],
  token uuid,
  day_max bigint,
  address text DEFAULT ''
) RETURNS TABLE (outcome text, status batch_status) LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  at timestamptz;
  draft batch;
  asked_by int := acting_member(merchant, asker);
  largest bigint;
  methods provider[];
  free bigint;
  asks boolean;
  required smallint;
  refused text;
BEGIN
  IF NOT may_act(merchant, credential, credential_version, address) THEN
    RETURN QUERY SELECT 'unauthenticated', NULL::batch_status;
    RETURN;
  END IF;
  SELECT b.* INTO draft FROM batch b WHERE b.id = $5 AND b.merchant_id = $1 FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  SELECT max(r.amount), array_agg(DISTINCT r.payment_method) INTO largest, methods FROM batch_recipient r
    WHERE r.batch_id = $5;
  SELECT b.available INTO free FROM merchant_balance b WHERE b.merchant_id = $1 FOR UPDATE;
  SELECT m.payouts_require_approval AND draft.total_amount >= m.approval_threshold, m.approvals_required
    INTO asks, required
  FROM merchant m WHERE m.id = $1;
  at := service_now() + (clock_timestamp() - now());
  refused := CASE
    WHEN draft.status <> 'draft' THEN 'conflict'
    WHEN draft.recipient_count = 0 THEN 'empty'
    WHEN NOT methods <@ connected THEN 'unconnected'
    WHEN NOT methods <@ operators THEN 'beyond_operators'
    WHEN largest > payment_max THEN 'beyond_payment'
    -- Read the halts after taking the locks: a halt that began while this transaction waited counts.
    WHEN EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) THEN 'halted'
    WHEN draft.total_amount > free THEN 'short'
  END;
  IF refused IS NOT NULL THEN
    RETURN QUERY SELECT refused, draft.status;
    RETURN;
  END IF;
  IF day_max IS NOT NULL THEN
    PERFORM take_daily_limit(ROW (credential, token, day_max)::daily_limit, draft.total_amount);
  END IF;
  INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
  VALUES (merchant, 'batch:' || draft.id, 'reserve', 'available', 'reserved', draft.total_amount, at);
  UPDATE batch b
  SET status = CASE WHEN asks THEN 'pending_approval' ELSE 'processing' END::batch_status,
    started_at = CASE WHEN NOT asks THEN at END,
    maker_member_ids = CASE WHEN asked_by = ANY (b.maker_member_ids) OR asked_by IS NULL
      THEN b.maker_member_ids
      ELSE b.maker_member_ids || asked_by END,
    approval = CASE WHEN asks THEN 'pending' ELSE 'not_required' END::approval_status,
    approval_digest = CASE WHEN asks THEN batch_digest(draft) END,
    approval_expires_at = CASE WHEN asks THEN at + approval_ms * interval '1 millisecond' END,
    approvals_required = CASE WHEN asks THEN required ELSE 0 END,
    approval_requested_by = CASE WHEN asks THEN asker END,
    approval_requester_id = CASE WHEN asks THEN nullif(asked_by, 0) END,
    approval_requested_at = CASE WHEN asks THEN at END
  WHERE b.id = draft.id RETURNING b.* INTO draft;
  IF NOT asks THEN PERFORM enqueue_batches(); END IF;
  PERFORM append_events(ARRAY[(merchant, 'batch_' || draft.status,
    batch_event_data(draft, 'draft'))::new_event], at);
  RETURN QUERY SELECT draft.status::text, draft.status;
END $$;
