-- Settles deposits. A deposit that was sent ends only here and only once. At most the reserved amount is
-- paid; if the operator confirms less, the rest is withheld until people decide. When the refunds of a
-- collection reach its paid amount, the collection becomes `reversed`. Of several outcomes for one deposit,
-- the first that may apply is applied. `moved` is false where the outcome was not applied: the deposit had
-- ended, had not begun, or was sent again or accepted since. `status` is then the present status of the
-- deposit, null where it does not exist.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION settle_deposits(
  transaction_ids bigint[],
  to_statuses transaction_status[],
  sources text[],
  amounts bigint[],
  operator_references text[],
  reasons text[],
  messages text[],
  evidences jsonb[],
  reversal_check_ms bigint[],
  attempts smallint[] DEFAULT NULL
) RETURNS TABLE (ordinal int, moved boolean, status transaction_status)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
  SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz;
  request record;
  known bigint[];
  statuses transaction_status[];
  -- The reserved amounts; null where the deposit has no reservation: then it is not settled.
  sums bigint[];
  -- The number of the last send; null where the operator has accepted the request.
  sends smallint[];
  originals bigint[];
  nth int;
  -- For each outcome: the deposit that it ends, its reserved amount, and the amount that is paid.
  ids bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(transaction_ids)]);
  reserved bigint[] := ids;
  settled bigint[] := ids;
  events new_event[];
BEGIN
  SELECT array_agg(t.id), array_agg(t.status), array_agg(t.reserved),
    coalesce(array_agg(t.refund_of_id) FILTER (WHERE t.refund_of_id IS NOT NULL), '{}'), max(t.now)
    INTO known, statuses, sums, originals, at
  FROM (
    SELECT t.id, t.status, t.refund_of_id, (SELECT service_now()) AS now, CASE t.transaction_type
      WHEN 'deposit' THEN (SELECT m.amount FROM ledger_entry m
        WHERE m.origin = 'transaction:' || t.id AND m.step = 'reserve') END AS reserved
    FROM transaction t
    -- Lock the refunded collections too: they may end here, and have smaller ids than their refunds.
    WHERE t.id = ANY (transaction_ids || ARRAY(
      SELECT r.refund_of_id FROM transaction r WHERE r.id = ANY (transaction_ids)
        AND r.refund_of_id IS NOT NULL))
    ORDER BY t.id FOR UPDATE OF t
  ) AS t;
  IF array_remove(attempts, NULL) <> '{}' THEN
    FOR request IN
      SELECT r.transaction_id, r.attempt, r.state FROM operator_request r
      WHERE r.transaction_id = ANY (transaction_ids) AND r.kind = 'disburse'
      ORDER BY r.transaction_id FOR NO KEY UPDATE
    LOOP
      CONTINUE WHEN request.state = 'accepted';
      sends[array_position(known, request.transaction_id)] := request.attempt;
    END LOOP;
  END IF;
  FOR item IN 1 .. cardinality(transaction_ids) LOOP
    nth := array_position(known, transaction_ids[item]);
    IF statuses[nth] = 'processing' AND sums[nth] IS NOT NULL AND to_statuses[item] IN ('success', 'failed')
      AND (attempts[item] IS NULL OR attempts[item] = sends[nth]) THEN
      statuses[nth] := to_statuses[item];
      ids[item] := known[nth];
      reserved[item] := sums[nth];
      IF to_statuses[item] = 'success' THEN settled[item] := least(amounts[item], reserved[item]); END IF;
    END IF;
  END LOOP;
  WITH changed AS (
    UPDATE transaction t
    SET status = i.to_status, settled_at = at, evidence_source = i.source,
      operator_reference = coalesce(i.operator_reference, t.operator_reference),
      failure_reason = i.reason, failure_message = i.message, settled_amount = i.settled
    FROM unnest(ids, to_statuses, sources, reserved, settled, operator_references, reasons, messages,
      evidences, reversal_check_ms)
      AS i (id, to_status, source, reserved, settled, operator_reference, reason, message, evidence, watch_ms)
    WHERE t.id = ANY (ids) AND t.id = i.id
    RETURNING t.*, t AS self, i.reserved, i.evidence, i.watch_ms
  ), paid AS (
    INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'transaction:' || c.id, side.step, 'reserved', side.account, side.amount, at
    FROM changed c CROSS JOIN LATERAL reservation_end(c.payment_method, c.reserved, c.settled_amount) AS side
    ORDER BY c.merchant_id, c.id, side.step
  ), withheld AS (
    INSERT INTO settlement_exception (merchant_id, transaction_id, requested_amount, confirmed_amount,
      created_at)
    SELECT c.merchant_id, c.id, c.reserved, c.settled_amount, at
    FROM changed c WHERE c.settled_amount < c.reserved ORDER BY c.id
  ), answered AS (
    UPDATE operator_request r
    SET state = request_end(c.status = 'success', c.evidence_source),
      next_check_at = check_after_end(
        c.status = 'success', r.next_check_at, r.handle->>'claimed', at, c.watch_ms),
      evidence = coalesce(c.evidence, r.evidence)
    FROM changed c WHERE r.transaction_id = ANY (ids) AND r.transaction_id = c.id AND r.kind = 'disburse'
  )
  SELECT array_agg((c.merchant_id, CASE c.status WHEN 'success' THEN 'deposit_completed' ELSE 'deposit_failed'
    END, deposit_event_data(c.self, 'processing', NULL))::new_event ORDER BY c.id) INTO events FROM changed c;
  FOR item IN 1 .. cardinality(transaction_ids) LOOP
    ordinal := item;
    moved := ids[item] IS NOT NULL;
    status := statuses[array_position(known, transaction_ids[item])];
    RETURN NEXT;
  END LOOP;
  PERFORM append_events(events || CASE WHEN originals <> '{}' THEN reverse_refunded(originals) END, at);
END $$;
