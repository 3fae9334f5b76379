-- Settles payouts. A payout that was sent ends only here and only once, wherever its outcome came from. At
-- most the reserved amount is paid; if the operator confirms less, the rest is withheld until people decide.
-- If a call has several outcomes for one payout, the first that may apply is applied. `moved` is false where
-- the outcome was not applied: the payout had ended, had not begun, or was sent again or accepted since.
-- `status` is then the present status of the payout, null where it does not exist.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION settle_payouts(
  payout_ids bigint[],
  to_statuses payout_status[],
  sources text[],
  amounts bigint[],
  operator_references text[],
  reasons text[],
  messages text[],
  evidences jsonb[],
  reversal_check_ms bigint[],
  attempts smallint[] DEFAULT NULL
) RETURNS TABLE (ordinal int, moved boolean, status payout_status)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
  SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz;
  request record;
  merchants int[];
  known bigint[];
  statuses payout_status[];
  -- The reserved amounts; null where the payout has no reservation: then it is not settled.
  sums bigint[];
  -- The number of the last send; null where the operator has accepted the request.
  sends smallint[];
  nth int;
  -- For each outcome: the payout that it ends, its reserved amount, and the amount that is paid.
  ids bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(payout_ids)]);
  reserved bigint[] := ids;
  settled bigint[] := ids;
  events new_event[];
BEGIN
  SELECT array_agg(p.id), array_agg(p.status), array_agg(p.reserved), array_agg(p.merchant_id), max(p.now)
    INTO known, statuses, sums, merchants, at
  FROM (
    SELECT p.id, p.status, p.merchant_id, (SELECT service_now()) AS now, (
      SELECT m.amount FROM ledger_entry m WHERE m.origin = 'payout:' || p.id
        AND m.step = 'reserve') AS reserved
    FROM payout p WHERE p.id = ANY (payout_ids) ORDER BY p.id FOR UPDATE OF p
  ) AS p;
  IF array_remove(attempts, NULL) <> '{}' THEN
    FOR request IN
      SELECT r.payout_id, r.attempt, r.state FROM operator_request r
      WHERE r.payout_id = ANY (payout_ids) ORDER BY r.payout_id FOR NO KEY UPDATE
    LOOP
      CONTINUE WHEN request.state = 'accepted';
      sends[array_position(known, request.payout_id)] := request.attempt;
    END LOOP;
  END IF;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchants) ORDER BY b.merchant_id FOR UPDATE;
  -- Apply the first outcome of each payout that may end it.
  FOR item IN 1 .. cardinality(payout_ids) LOOP
    nth := array_position(known, payout_ids[item]);
    IF statuses[nth] = 'processing' AND sums[nth] IS NOT NULL
      AND to_statuses[item] IN ('completed', 'failed')
      AND (attempts[item] IS NULL OR attempts[item] = sends[nth]) THEN
      statuses[nth] := to_statuses[item];
      ids[item] := known[nth];
      reserved[item] := sums[nth];
      IF to_statuses[item] = 'completed' THEN settled[item] := least(amounts[item], reserved[item]); END IF;
    END IF;
  END LOOP;
  WITH changed AS (
    UPDATE payout p
    SET status = i.to_status, settled_at = at, evidence_source = i.source,
      operator_reference = coalesce(i.operator_reference, p.operator_reference),
      failure_reason = i.reason, failure_message = i.message, settled_amount = i.settled
    FROM unnest(ids, to_statuses, sources, reserved, settled, operator_references, reasons, messages,
      evidences, reversal_check_ms)
      AS i (id, to_status, source, reserved, settled, operator_reference, reason, message, evidence, watch_ms)
    WHERE p.id = ANY (ids) AND p.id = i.id
    RETURNING p.*, p AS self, i.reserved, i.evidence, i.watch_ms
  ), paid AS (
    INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'payout:' || c.id, side.step, 'reserved', side.account, side.amount, at
    FROM changed c CROSS JOIN LATERAL reservation_end(c.payment_method, c.reserved, c.settled_amount) AS side
    ORDER BY c.merchant_id, c.id, side.step
  ), withheld AS (
    INSERT INTO settlement_exception (merchant_id, payout_id, requested_amount, confirmed_amount, created_at)
    SELECT c.merchant_id, c.id, c.reserved, c.settled_amount, at
    FROM changed c WHERE c.settled_amount < c.reserved ORDER BY c.id
  ), answered AS (
    UPDATE operator_request r
    SET state = request_end(c.status = 'completed', c.evidence_source),
      next_check_at = check_after_end(c.status = 'completed', r.next_check_at, r.handle->>'claimed',
        at, c.watch_ms),
      evidence = coalesce(c.evidence, r.evidence)
    FROM changed c WHERE r.payout_id = ANY (ids) AND r.payout_id = c.id
  )
  SELECT array_agg((c.merchant_id, 'payout_' || c.status, payout_event_data(c.self, 'processing'))::new_event
    ORDER BY c.id) INTO events FROM changed c;
  FOR item IN 1 .. cardinality(payout_ids) LOOP
    ordinal := item;
    moved := ids[item] IS NOT NULL;
    status := statuses[array_position(known, payout_ids[item])];
    RETURN NEXT;
  END LOOP;
  PERFORM append_events(events, at);
END $$;
