-- Begins the payouts that are due. A loop checks row by row whether the balance covers each payout. A payout
-- that the operator executed before a restore (an orphan) is asked about, never sent: its outcome is `asked`.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION begin_payouts(operator provider, take int, fence_ms bigint, first_check_ms bigint)
RETURNS TABLE (
  outcome text,
  payout_id bigint,
  request_id bigint,
  correlation_id uuid,
  merchant_id int,
  amount bigint,
  phone text,
  request jsonb,
  created_at timestamptz
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
  SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  chosen bigint[];
  merchants int[];
  item record;
  merchant int;
  -- The available amount of the merchant that is left for its next payouts.
  remaining bigint;
  ids bigint[];
  covered boolean[];
BEGIN
  IF EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) THEN RETURN; END IF;
  SELECT array_agg(c.id), array_agg(DISTINCT c.merchant_id) INTO chosen, merchants
  FROM payouts_due(operator, at, take) AS c;
  IF chosen IS NULL THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock_shared(72707373, id) FROM (SELECT id FROM unnest(merchants) AS id
    ORDER BY id) AS merchant;
  -- SKIP LOCKED leaves out payouts that another transaction begins or cancels at this moment.
  SELECT array_agg(locked.id), array_agg(DISTINCT locked.merchant_id) INTO chosen, merchants
  FROM (
    SELECT p.id, p.merchant_id FROM payout p
    WHERE p.id = ANY (chosen) AND p.status = 'pending' AND p.approval IN ('not_required', 'approved')
    ORDER BY p.id FOR UPDATE SKIP LOCKED
  ) AS locked;
  IF chosen IS NULL THEN RETURN; END IF;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchants) ORDER BY b.merchant_id FOR UPDATE;
  -- Read the halt after the locks: a halt may have come while this transaction waited.
  FOR item IN
    SELECT p.id, p.merchant_id, p.amount, p.scheduled_at IS NOT NULL AS asks, balance.available,
      (SELECT service_now() + (clock_timestamp() - now())) AS now
    FROM payout p
    JOIN LATERAL (
      SELECT FROM merchant m WHERE m.id = p.merchant_id AND m.status = 'active' LIMIT 1) AS active ON true
    JOIN LATERAL (
      SELECT b.available FROM merchant_balance b
      WHERE b.merchant_id = p.merchant_id AND (p.scheduled_at IS NOT NULL OR b.receivable = 0)
        LIMIT 1) AS balance ON true
    WHERE p.id = ANY (chosen) AND NOT EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL)
    ORDER BY p.merchant_id, p.send_at, p.id
  LOOP
    at := item.now;
    -- Only a scheduled payout takes money here: other payouts reserved theirs when they were created.
    IF merchant IS DISTINCT FROM item.merchant_id THEN
      merchant := item.merchant_id;
      remaining := item.available;
    END IF;
    ids := ids || item.id;
    covered := covered || (NOT item.asks OR item.amount <= remaining);
    IF item.asks AND item.amount <= remaining THEN remaining := remaining - item.amount; END IF;
  END LOOP;
  RETURN QUERY
  WITH changed AS (
    UPDATE payout p
    SET status = CASE WHEN j.covered THEN 'processing' ELSE 'failed' END::payout_status,
      failure_reason = CASE WHEN NOT j.covered THEN 'INSUFFICIENT_BALANCE' END,
      evidence_source = CASE WHEN NOT j.covered THEN 'service' END,
      settled_at = CASE WHEN NOT j.covered THEN at END
    FROM unnest(ids, covered) AS j (id, covered) WHERE p.id = ANY (ids) AND p.id = j.id
    RETURNING p.*, p AS self
  ), reserved AS (
    INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'payout:' || c.id, 'reserve', 'available', 'reserved', c.amount, at
    FROM changed c WHERE c.status = 'processing' AND c.scheduled_at IS NOT NULL ORDER BY c.merchant_id, c.id
  ), asked AS (
    INSERT INTO operator_request (merchant_id, payout_id, provider, kind, correlation_id, amount, phone,
      state, fence_until, next_check_at, accepted_at, created_at)
    SELECT c.merchant_id, c.id, c.payment_method, 'disburse', c.correlation_id, c.amount, c.destination_phone,
      CASE WHEN orphan.found THEN 'accepted' ELSE 'sending' END::operator_request_state,
      now() + fence_ms * interval '1 millisecond',
      at + CASE WHEN orphan.found THEN 0 ELSE first_check_ms END * interval '1 millisecond',
      CASE WHEN orphan.found THEN at END, at
    FROM changed c
    LEFT JOIN LATERAL (
      -- The operator executed this payout before a restore, so it is only asked about it.
      SELECT true AS found FROM operator_orphan o WHERE o.correlation_id = c.correlation_id LIMIT 1
    ) AS orphan ON true
    WHERE c.status = 'processing' ORDER BY c.id
    RETURNING id, payout_id, correlation_id, created_at, state
  ), events AS MATERIALIZED (
    SELECT append_events(array_agg((c.merchant_id, 'payout_' || c.status,
      payout_event_data(c.self, 'pending'))::new_event ORDER BY c.id), at)
    FROM changed c
  )
  SELECT CASE WHEN c.status <> 'processing' THEN 'short' WHEN a.state = 'accepted' THEN 'asked'
    ELSE 'begun' END, c.id, a.id, a.correlation_id, c.merchant_id, c.amount, c.destination_phone,
    c.request_data, a.created_at
  FROM changed c LEFT JOIN asked a ON a.payout_id = c.id CROSS JOIN events ORDER BY c.send_at, c.id;
END $$;
