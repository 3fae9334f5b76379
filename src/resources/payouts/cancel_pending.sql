-- Cancels those of the given payouts that are pending and makes their reserved money available again. The
-- caller has locked their rows. `becomes` is the new status of their approvals (null: unchanged); `why` is
-- added to the data of their events.
CREATE OR REPLACE FUNCTION cancel_pending(
  payout_ids bigint[],
  becomes approval_status DEFAULT NULL,
  why jsonb DEFAULT '{}'
) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  at timestamptz := service_now();
  cancelled new_event[];
BEGIN
  PERFORM FROM merchant_balance b
  WHERE b.merchant_id = ANY (ARRAY(SELECT p.merchant_id FROM payout p WHERE p.id = ANY (payout_ids)))
  ORDER BY b.merchant_id FOR UPDATE;
  WITH changed AS (
    UPDATE payout p
    SET status = 'cancelled', settled_at = at, evidence_source = 'service',
      approval = coalesce(becomes, p.approval)
    WHERE p.id = ANY (payout_ids) AND p.status = 'pending'
    RETURNING p.*, p AS self
  ), freed AS (
    INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, reserved.origin, 'void', 'reserved', 'available', reserved.amount, at
    FROM changed c JOIN LATERAL (
      SELECT m.origin, m.amount FROM ledger_entry m WHERE m.origin = 'payout:' || c.id AND m.step = 'reserve'
        LIMIT 1) AS reserved ON true
    ORDER BY c.merchant_id, c.id
  )
  SELECT array_agg((c.merchant_id, 'payout_cancelled', payout_event_data(c.self, 'pending') || why)::new_event
    ORDER BY c.id) INTO cancelled FROM changed c;
  PERFORM append_events(cancelled, at);
  RETURN coalesce(cardinality(cancelled), 0);
END $$;
