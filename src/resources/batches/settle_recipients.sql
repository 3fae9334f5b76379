-- Settles recipients by the rules of `settle_payouts`: a recipient that was sent ends only here, and once.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION settle_recipients(
  recipient_ids bigint[],
  to_statuses recipient_status[],
  sources text[],
  amounts bigint[],
  operator_references text[],
  reasons text[],
  messages text[],
  evidences jsonb[],
  reversal_check_ms bigint[],
  attempts smallint[]
) RETURNS TABLE (ordinal int, moved boolean, status recipient_status) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz;
  request record;
  batches int[] := ARRAY(SELECT DISTINCT r.batch_id FROM batch_recipient r WHERE r.id = ANY (recipient_ids)
    ORDER BY r.batch_id);
  merchants int[];
  known bigint[];
  statuses recipient_status[];
  sums bigint[];
  -- The number of the last send of each recipient; null where the operator has accepted the request.
  sends smallint[];
  nth int;
  -- The recipient that each outcome changes, and the amount that it settles.
  ids bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(recipient_ids)]);
  settled bigint[] := ids;
  counted record;
BEGIN
  PERFORM FROM batch b WHERE b.id = ANY (batches) ORDER BY b.id FOR UPDATE;
  SELECT array_agg(r.id), array_agg(r.status), array_agg(r.amount), array_agg(r.merchant_id), max(r.now)
    INTO known, statuses, sums, merchants, at
  FROM (
    SELECT r.id, r.status, r.amount, r.merchant_id, (SELECT service_now()) AS now
    FROM batch_recipient r WHERE r.id = ANY (recipient_ids) ORDER BY r.id FOR UPDATE
  ) AS r;
  IF array_remove(attempts, NULL) <> '{}' THEN
    FOR request IN
      SELECT r.recipient_id, r.attempt, r.state FROM operator_request r
      WHERE r.recipient_id = ANY (recipient_ids) ORDER BY r.recipient_id FOR NO KEY UPDATE
    LOOP
      CONTINUE WHEN request.state = 'accepted';
      sends[array_position(known, request.recipient_id)] := request.attempt;
    END LOOP;
  END IF;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchants) ORDER BY b.merchant_id FOR UPDATE;
  -- Where a recipient has several outcomes, the first one that may change it applies.
  FOR item IN 1 .. cardinality(recipient_ids) LOOP
    nth := array_position(known, recipient_ids[item]);
    IF statuses[nth] = 'processing' AND to_statuses[item] IN ('success', 'failed')
      AND (attempts[item] IS NULL OR attempts[item] = sends[nth]) THEN
      statuses[nth] := to_statuses[item];
      ids[item] := known[nth];
      IF to_statuses[item] = 'success' THEN settled[item] := least(amounts[item], sums[nth]); END IF;
    END IF;
  END LOOP;
  WITH changed AS (
    UPDATE batch_recipient r
    SET status = i.to_status, settled_at = at, evidence_source = i.source,
      operator_reference = i.operator_reference, failure_reason = i.reason, failure_message = i.message,
        settled_amount = i.settled
    FROM unnest(ids, to_statuses, sources, settled, operator_references, reasons, messages)
      AS i (id, to_status, source, settled, operator_reference, reason, message)
    WHERE r.id = ANY (ids) AND r.id = i.id
    RETURNING r.*
  ), paid AS (
    INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'recipient:' || c.id, side.step, 'reserved', side.account, side.amount, at
    FROM changed c CROSS JOIN LATERAL reservation_end(c.payment_method, c.amount, c.settled_amount) AS side
    ORDER BY c.merchant_id, c.id, side.step
  ), withheld AS (
    INSERT INTO settlement_exception (merchant_id, recipient_id, requested_amount, confirmed_amount,
      created_at)
    SELECT c.merchant_id, c.id, c.amount, c.settled_amount, at
    FROM changed c WHERE c.settled_amount < c.amount ORDER BY c.id
  ), ended AS (
    SELECT c.batch_id, count(c.settled_amount)::int AS succeeded, (
      count(*) - count(c.settled_amount))::int AS failed,
      coalesce(sum(c.settled_amount), 0)::bigint AS paid
    FROM changed c GROUP BY c.batch_id
  )
  SELECT array_agg(e.batch_id) AS ids, array_agg(e.succeeded) AS succeeded, array_agg(e.failed) AS failed,
    array_agg(e.paid) AS paid
    INTO counted FROM ended e;
  UPDATE operator_request r
  SET state = request_end(i.to_status = 'success', i.source),
    next_check_at = check_after_end(i.to_status = 'success', r.next_check_at, r.handle->>'claimed',
      at, i.watch_ms),
    evidence = coalesce(i.evidence, r.evidence)
  FROM unnest(ids, to_statuses, sources, evidences, reversal_check_ms) AS i (id, to_status, source, evidence,
    watch_ms)
  WHERE r.recipient_id = ANY (ids) AND r.recipient_id = i.id;
  IF counted.ids IS NOT NULL THEN
    PERFORM count_ended(counted.ids, counted.succeeded, counted.failed, counted.paid, at);
  END IF;
  FOR item IN 1 .. cardinality(recipient_ids) LOOP
    ordinal := item;
    moved := ids[item] IS NOT NULL;
    status := statuses[array_position(known, recipient_ids[item])];
    RETURN NEXT;
  END LOOP;
END $$;
