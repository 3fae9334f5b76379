-- Cancels those of the given deposits that wait for approval (`pending`) and makes their reserved money
-- available again. The caller has locked their rows. `becomes` is the new status of their approvals (null:
-- unchanged); `why` is added to the data of their events.
CREATE OR REPLACE FUNCTION cancel_deposits(
  ids bigint[],
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
  WHERE b.merchant_id = ANY (ARRAY(SELECT t.merchant_id FROM transaction t WHERE t.id = ANY (ids)))
  ORDER BY b.merchant_id FOR UPDATE;
  WITH changed AS (
    UPDATE transaction t SET status = 'cancelled', settled_at = at, evidence_source = 'service'
    WHERE t.id = ANY (ids) AND t.status = 'pending' AND t.transaction_type = 'deposit'
    RETURNING t.*, t AS self
  ), decided AS (
    UPDATE deposit_approval a SET approval = becomes FROM changed c
    WHERE a.transaction_id = c.id AND becomes IS NOT NULL
  ), freed AS (
    INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'transaction:' || c.id, 'void', 'reserved', 'available', c.amount, at
    FROM changed c ORDER BY c.merchant_id, c.id
  )
  SELECT array_agg((c.merchant_id, 'deposit_cancelled', deposit_event_data(c.self, 'pending',
    coalesce(becomes::text, 'pending')) || why)::new_event ORDER BY c.id) INTO cancelled FROM changed c;
  PERFORM append_events(cancelled, at);
  RETURN coalesce(cardinality(cancelled), 0);
END $$;
