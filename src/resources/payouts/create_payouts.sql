-- Creates payouts. A payout that goes at once reserves its money here; a scheduled payout reserves it when it
-- is due. The checks are, in this order: the caller, the reference, the halt, the money; payouts are checked
-- in order of arrival. `outcome` is `made`, `unauthenticated`, `duplicate`, `differs`, `halted` or `short`;
-- only `made` has an id and writes rows. `daily_limit` is null for a caller without one: if a caller exceeds
-- its limit, the whole call is undone.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION create_payouts(
  items payout_item[],
  approval_ms bigint,
  waits boolean
) RETURNS TABLE (outcome text, payout_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
  SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  -- Truncated to milliseconds, as the columns keep it: a payout that goes at once must be due at once.
  at timestamptz := date_trunc('milliseconds', service_now());
  reserved_at timestamptz;
  merchants int[] := ARRAY(SELECT i.merchant_id FROM unnest(items) AS i);
  judged record;
  events new_event[];
BEGIN
  PERFORM share_access(merchants, waits);
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchants) ORDER BY b.merchant_id FOR UPDATE;
  reserved_at := service_now() + (clock_timestamp() - now());
  judged := judge_payouts(items);
  WITH item AS (
    SELECT i.*, i.id = ANY (judged.asking) AS asks
    FROM unnest(judged.ids, items) WITH ORDINALITY AS i (id)
    WHERE i.id IS NOT NULL
  ), made AS (
    -- The lock on the balance keeps other calls from taking the same reference of a merchant meanwhile.
    INSERT INTO payout (id, merchant_id, payment_method, destination_phone, amount, reference, scheduled_at,
      send_at, approval, approval_digest, approval_expires_at, maker, beneficiary_id, beneficiary_name,
      request_data, created_at, correlation_id)
    SELECT id, merchant_id, provider, phone, amount, reference, scheduled_at, coalesce(scheduled_at, at),
      CASE WHEN asks THEN 'pending' ELSE 'not_required' END::approval_status,
      CASE WHEN asks THEN payout_digest(merchant_id, provider, phone, amount, reference, scheduled_at) END,
      CASE WHEN asks THEN at + approval_ms * interval '1 millisecond' END,
      (recording).actor, beneficiary_id, beneficiary_name, request, at, coalesce(identity, gen_random_uuid())
    FROM item ORDER BY merchant_id, id
    RETURNING payout.*, payout AS self
  ), reserved AS (
    INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
    SELECT m.merchant_id, 'payout:' || m.id, 'reserve', 'available', 'reserved', m.amount, reserved_at
    FROM made m WHERE m.scheduled_at IS NULL ORDER BY m.merchant_id, m.id
  ), entry AS (
    INSERT INTO audit_entry (merchant_id, actor, address, request_id, channel, operation, is_payment, target,
      after)
    SELECT (i.recording).*, true, 'payout:' || m.id,
      jsonb_build_object('amount', m.amount, 'reference', m.reference)
    FROM made m JOIN item i ON i.id = m.id ORDER BY i.ordinality
    RETURNING merchant_id, id
  ), unchained AS (
    INSERT INTO audit_unchained (merchant_id, entry_id) SELECT merchant_id, id FROM entry
  )
  SELECT array_agg((m.merchant_id, 'payout_pending', payout_event_data(m.self, NULL))::new_event
    ORDER BY m.id) INTO events FROM made m;
  FOR nth IN 1 .. cardinality(items) LOOP
    outcome := judged.outcomes[nth];
    payout_id := judged.ids[nth];
    IF outcome = 'made' AND items[nth].daily_limit.api_key_id IS NOT NULL THEN
      PERFORM take_daily_limit(items[nth].daily_limit, items[nth].amount);
    END IF;
    RETURN NEXT;
  END LOOP;
  PERFORM append_events(events, at);
END $$;
