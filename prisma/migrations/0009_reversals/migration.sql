-- AlterEnum
ALTER TYPE "ledger_step" ADD VALUE 'reverse';
ALTER TYPE "ledger_step" ADD VALUE 'shortfall';

-- Below: written by hand. A collection that the operator takes back after it was credited.

-- Reverse: the one way from success to reversed, only on the operator's own answer, once. What the merchant still has
-- free goes back to what the operator holds; what is spent or set aside already stays a claim on the merchant, in
-- `suspense`, so that a balance is never below zero and the operator's account is right at once. Of several reversals of
-- one merchant in a call the older transaction takes first. `shortfall` is the claim, null where nothing moved.
CREATE FUNCTION reverse_many(transaction_ids bigint[], sources text[], evidences jsonb[])
RETURNS TABLE (place int, moved boolean, status transaction_status, shortfall bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM FROM transaction t WHERE t.id = ANY (transaction_ids) ORDER BY t.id FOR UPDATE;
  PERFORM FROM merchant_balance b
  WHERE b.merchant_id IN (SELECT t.merchant_id FROM transaction t WHERE t.id = ANY (transaction_ids))
  ORDER BY b.merchant_id FOR UPDATE;
  RETURN QUERY
  WITH item AS (
    SELECT i.*, i.ordinality::int AS place
    FROM unnest(transaction_ids, sources, evidences) WITH ORDINALITY AS i (id, source, evidence, ordinality)
  ), chosen AS (
    SELECT DISTINCT ON (i.id) i.* FROM item i ORDER BY i.id, i.place
  ), allowed AS (
    SELECT c.id, c.place, c.evidence, t.merchant_id, t.status AS was, t.settled_amount AS amount
    FROM chosen c
    JOIN transaction t ON t.id = c.id AND t.transaction_type = 'pay'
    JOIN lifecycle_move m ON m.lifecycle = 'transaction' AND m.from_status = t.status::text AND m.to_status = 'reversed'
    WHERE c.source = 'query'
  ), split AS (
    SELECT a.*, greatest(0, least(a.amount, b.available - coalesce(sum(a.amount) OVER (
      PARTITION BY a.merchant_id ORDER BY a.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)))::bigint AS taken
    FROM allowed a JOIN merchant_balance b USING (merchant_id)
  ), changed AS (
    UPDATE transaction t SET status = 'reversed', evidence_source = 'query'
    FROM split s WHERE t.id = s.id
    RETURNING t.*, s.place, s.was, s.evidence, s.taken, s.amount - s.taken AS rest
  ), given_back AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'transaction:' || c.id, side.step, side.account, clearing_account(c.payment_method), side.amount,
      service_now()
    FROM changed c CROSS JOIN LATERAL (VALUES
      ('reverse'::ledger_step, 'available'::ledger_account, c.taken),
      ('shortfall'::ledger_step, 'suspense'::ledger_account, c.rest)
    ) AS side (step, account, amount)
    WHERE side.amount > 0 ORDER BY c.merchant_id, c.id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id, 'payment_reversed', jsonb_strip_nulls(jsonb_build_object(
      'transaction_id', c.id, 'reference', c.reference, 'amount', c.settled_amount, 'currency', 'XOF',
      'payment_method', c.payment_method, 'customer_phone', c.customer_phone, 'status', c.status,
      'previous_status', c.was, 'late', c.late, 'shortfall', nullif(c.rest, 0))), service_now()
    FROM changed c ORDER BY c.merchant_id, c.id
  ), answered AS (
    UPDATE operator_request r SET next_check_at = NULL, evidence = coalesce(c.evidence, r.evidence)
    FROM changed c
    WHERE r.merchant_id = c.merchant_id AND r.transaction_id = c.id AND r.kind = 'collect'
  )
  SELECT i.place, c.id IS NOT NULL AND c.place = i.place, coalesce(c.status, t.status), c.rest
  FROM item i
  JOIN transaction t ON t.id = i.id
  LEFT JOIN changed c ON c.id = i.id
  ORDER BY i.place;
END $$;

-- The audit, as before; it also holds each reversed collection against what it gave back to its operator, whole and once.
CREATE OR REPLACE FUNCTION audit_ledger(whole boolean) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' AS $$
#variable_conflict use_column
DECLARE
  since audit_point := (SELECT p FROM audit_point p WHERE NOT whole);
  since_movement bigint := coalesce(since.movement_id, 0);
  since_event bigint := coalesce(since.event_id, 0);
  before_event bigint := coalesce(since.event_id_before, 0);
  all_of_it boolean := since IS NULL;
  touched bigint[];
  causes text[];
  changes text[] := ARRAY(
    SELECT event_of('pending') UNION SELECT event_of(m.to_status) FROM lifecycle_move m WHERE m.lifecycle = 'transaction');
BEGIN
  IF NOT all_of_it THEN
    touched := ARRAY(
      SELECT (e.data->>'transaction_id')::bigint FROM event e WHERE e.id > since_event AND e.data ? 'transaction_id'
      UNION SELECT transaction_of(m.cause) FROM movement m WHERE m.id > since_movement AND m.cause LIKE 'transaction:%');
    causes := ARRAY(SELECT 'transaction:' || id FROM unnest(touched) id);
  END IF;

  RETURN QUERY
  WITH proven AS (
    SELECT p.merchant_id, p.available, p.reserved FROM audit_proven p WHERE NOT all_of_it
  ), moved AS (
    SELECT m.merchant_id,
      sum(CASE 'available'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount ELSE 0 END) AS available,
      sum(CASE 'reserved'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount ELSE 0 END) AS reserved
    FROM movement m WHERE m.id > since_movement GROUP BY m.merchant_id
  ), rebuilt AS (
    SELECT merchant_id, coalesce(p.available, 0) + coalesce(m.available, 0) AS available,
      coalesce(p.reserved, 0) + coalesce(m.reserved, 0) AS reserved
    FROM proven p FULL JOIN moved m USING (merchant_id)
  )
  SELECT 'balances_equal_movements', merchant_id, CASE WHEN b.available IS NULL THEN 'has movements but no balance'
    ELSE format('balance says available %s, reserved %s; its movements say %s, %s', b.available, b.reserved,
      coalesce(r.available, 0), coalesce(r.reserved, 0)) END
  FROM merchant_balance b FULL JOIN rebuilt r USING (merchant_id)
  WHERE (b.available, b.reserved) IS DISTINCT FROM (coalesce(r.available, 0), coalesce(r.reserved, 0));

  RETURN QUERY
  SELECT 'no_balance_below_zero', b.merchant_id, format('available %s, reserved %s', b.available, b.reserved)
  FROM merchant_balance b WHERE b.available < 0 OR b.reserved < 0;

  RETURN QUERY
  WITH credit AS (
    SELECT m.* FROM movement m
    WHERE m.step = 'credit' AND (all_of_it OR m.id > since_movement OR m.cause = ANY (causes))
  ), paid AS (
    SELECT t.id, t.merchant_id, t.settled_amount AS amount, holder.account AS debit
    FROM transaction t JOIN (
      SELECT provider, clearing_account(provider) AS account FROM unnest(enum_range(NULL::provider)) provider OFFSET 0
    ) holder ON holder.provider = t.payment_method
    WHERE t.transaction_type = 'pay' AND t.status IN ('success', 'reversed') AND (all_of_it OR t.id = ANY (touched))
  )
  SELECT 'collections_credited_once', coalesce(p.merchant_id, c.merchant_id), CASE
    WHEN c.cause IS NULL THEN format('transaction:%s is paid but was never credited', p.id)
    WHEN p.id IS NULL THEN c.cause || ' was credited but is not paid'
    ELSE c.cause || ' was credited with another amount, account or merchant' END
  FROM paid p FULL JOIN credit c ON transaction_of(c.cause) = p.id
  WHERE (p.merchant_id, p.amount, p.debit, 'available'::ledger_account)
    IS DISTINCT FROM (c.merchant_id, c.amount, c.debit, c.credit);

  RETURN QUERY
  WITH back AS (
    SELECT m.cause, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too, sum(m.amount)::bigint AS amount,
      min(m.credit) AS account, max(m.credit) AS account_too
    FROM movement m
    WHERE m.step IN ('reverse', 'shortfall') AND (all_of_it OR m.id > since_movement OR m.cause = ANY (causes))
    GROUP BY m.cause
  ), reversed AS (
    SELECT t.id, t.merchant_id, t.settled_amount AS amount, clearing_account(t.payment_method) AS account
    FROM transaction t
    WHERE t.transaction_type = 'pay' AND t.status = 'reversed' AND (all_of_it OR t.id = ANY (touched))
  )
  SELECT 'collections_credited_once', coalesce(r.merchant_id, b.merchant_id), CASE
    WHEN b.cause IS NULL THEN format('transaction:%s is reversed but was never given back', r.id)
    WHEN r.id IS NULL THEN b.cause || ' was given back but is not reversed'
    ELSE b.cause || ' was given back with another amount, account or merchant' END
  FROM reversed r FULL JOIN back b ON transaction_of(b.cause) = r.id
  WHERE (r.merchant_id, r.merchant_id, r.amount, r.account, r.account)
    IS DISTINCT FROM (b.merchant_id, b.merchant_id_too, b.amount, b.account, b.account_too);

  RETURN QUERY
  SELECT 'reservations_end_once', ended.merchant_id, ended.cause || ' ended otherwise than it was reserved'
  FROM movement ended LEFT JOIN movement held ON held.cause = ended.cause AND held.step = 'reserve'
  WHERE ended.step IN ('post', 'void') AND ended.id > since_movement
    AND (ended.merchant_id, ended.amount, ended.debit) IS DISTINCT FROM (held.merchant_id, held.amount, held.credit)
  UNION ALL
  SELECT 'reservations_end_once', posted.merchant_id, posted.cause || ' was paid out and given back'
  FROM movement posted JOIN movement voided ON voided.cause = posted.cause AND voided.step = 'void'
  WHERE posted.step = 'post' AND greatest(posted.id, voided.id) > since_movement
  UNION ALL
  SELECT 'reservations_end_once', held.merchant_id, format('%s is %s, and its money still reserved', held.cause, t.status)
  FROM movement held JOIN transaction t ON t.id = transaction_of(held.cause)
  WHERE held.step = 'reserve' AND t.status NOT IN ('pending', 'processing')
    AND (all_of_it OR held.cause = ANY (causes))
    AND NOT EXISTS (SELECT FROM movement e WHERE e.cause = held.cause AND e.step IN ('post', 'void'));

  RETURN QUERY
  SELECT 'events_tell_every_change', h.merchant_id, format('positions end at %s, with %s of %s events after %s',
    h.position, found.count, h.position - found.since, found.since)
  FROM stream_head h
  LEFT JOIN (SELECT * FROM audit_proven WHERE NOT all_of_it) p USING (merchant_id)
  CROSS JOIN LATERAL (
    SELECT coalesce(p.position, 0) AS since, count(*) AS count, coalesce(max(e.position), 0) AS last
    FROM event e WHERE e.merchant_id = h.merchant_id AND e.position > coalesce(p.position, 0)
  ) found
  WHERE (all_of_it OR h.position <> coalesce(p.position, 0))
    AND (found.count <> h.position - found.since OR found.last <> h.position);

  -- A chain holds where the hashes of what was told cancel out but for the last one: each event begins where the one
  -- before it ended, none is missing, and none is told twice.
  RETURN QUERY
  WITH lawful AS MATERIALIZED (
    SELECT event_of(m.to_status) AS type, m.from_status AS was, m.to_status AS status
    FROM lifecycle_move m WHERE m.lifecycle = 'transaction'
    UNION ALL SELECT 'payment_pending', '', 'pending'
  ), told AS (
    SELECT c.transaction_id, min(c.merchant_id) AS merchant_id, max(c.merchant_id) AS merchant_id_too, min(c.id) AS first_id,
      count(*) FILTER (WHERE c.was = '') AS begun,
      bool_and(((c.type, c.was, c.status) IN (SELECT l.type, l.was, l.status FROM lawful l)) IS TRUE) AS lawful,
      sum(hashtext(c.status)::bigint - CASE c.was WHEN '' THEN 0 ELSE hashtext(c.was) END) AS net
    FROM (
      SELECT e.id, e.merchant_id, e.type, (e.data->>'transaction_id')::bigint AS transaction_id, e.data->>'status' AS status,
        coalesce(e.data->>'previous_status', '') AS was
      FROM event e WHERE e.id > since_event AND e.type = ANY (changes)
      OFFSET 0
    ) c GROUP BY c.transaction_id
  )
  SELECT 'events_tell_every_change', coalesce(t.merchant_id, told.merchant_id), CASE
    WHEN t.id IS NULL THEN format('events tell of transaction:%s, which is not there', told.transaction_id)
    ELSE format('its events do not tell how transaction:%s became %s', t.id, t.status) END
  -- What was told of it before the point ended where its first event since begins; the whole proof takes no such word.
  FROM told LEFT JOIN event first ON NOT all_of_it AND told.begun = 0 AND first.id = told.first_id FULL JOIN (
    SELECT * FROM transaction WHERE transaction_type = 'pay' AND (all_of_it OR id = ANY (touched))
  ) t ON t.id = told.transaction_id
  WHERE CASE WHEN told.transaction_id IS NULL THEN all_of_it ELSE
    (told.merchant_id, told.merchant_id_too) IS DISTINCT FROM (t.merchant_id, t.merchant_id)
    OR NOT told.lawful OR told.begun <> 1 AND (all_of_it OR told.begun <> 0)
    OR told.net + CASE told.begun WHEN 0 THEN hashtext(first.data->>'previous_status') ELSE 0 END <> hashtext(t.status::text) END
  UNION ALL
  SELECT 'events_tell_every_change', c.merchant_id, 'no event tells of the credit of ' || c.cause
  FROM movement c
  WHERE NOT all_of_it AND c.step = 'credit' AND c.id > since_movement AND NOT EXISTS (
    SELECT FROM event e WHERE e.id > before_event AND e.type = 'payment_received'
      AND (e.data->>'transaction_id')::bigint = transaction_of(c.cause));

  RETURN QUERY
  SELECT 'statuses_agree_with_requests', t.merchant_id, format('transaction:%s is %s, and %s', t.id, t.status,
    CASE WHEN r.id IS NULL THEN 'nothing was asked of the operator' ELSE format('its request over %s by %s is %s, asked about %s',
      r.amount, r.provider, r.state, coalesce(r.next_check_at::text, 'no more')) END)
  FROM transaction t
  LEFT JOIN operator_request r ON r.merchant_id = t.merchant_id AND r.transaction_id = t.id AND r.kind = 'collect'
  WHERE t.transaction_type = 'pay' AND (all_of_it OR t.id = ANY (touched))
    AND (r.amount = t.amount AND r.provider = t.payment_method AND CASE t.status
      WHEN 'success' THEN r.state = 'settled'
      WHEN 'reversed' THEN r.state = 'settled'
      WHEN 'failed' THEN r.state IN ('refused', 'closed')
      WHEN 'cancelled' THEN r.state = 'closed'
      WHEN 'expired' THEN r.state NOT IN ('settled', 'refused')
      -- Not decided: then somebody will ask.
      ELSE r.state IN ('sending', 'unsent', 'accepted', 'doubt') AND r.next_check_at IS NOT NULL END) IS NOT TRUE
  UNION ALL
  SELECT 'statuses_agree_with_requests', r.merchant_id, format('transaction:%s was asked of the operator twice', r.transaction_id)
  FROM operator_request r JOIN operator_request other
    ON other.transaction_id = r.transaction_id AND other.merchant_id = r.merchant_id AND other.kind = r.kind AND other.id < r.id
  WHERE all_of_it OR (r.merchant_id, r.transaction_id) IN (
    SELECT t.merchant_id, t.id FROM transaction t WHERE t.id = ANY (touched));

  RETURN QUERY
  SELECT 'movements_have_one_cause', m.merchant_id, format('%s has %s twice', m.cause, m.step)
  FROM movement m JOIN movement other ON other.cause = m.cause AND other.step = m.step AND other.id < m.id
  WHERE m.id > since_movement
  UNION ALL
  SELECT 'movements_have_one_cause', m.merchant_id, format('%s from %s to %s for %s: nothing of ours moves so', m.step,
    m.debit, m.credit, m.cause)
  FROM movement m LEFT JOIN transaction t ON t.id = transaction_of(m.cause)
  WHERE m.id > since_movement AND NOT (CASE m.step
    WHEN 'fund' THEN m.cause LIKE 'funding:%' AND m.debit = 'funding' AND m.credit = 'available'
    WHEN 'credit' THEN t.merchant_id = m.merchant_id AND m.credit = 'available' AND m.debit::text LIKE 'clearing\_%'
    WHEN 'reverse' THEN t.merchant_id = m.merchant_id AND m.debit = 'available' AND m.credit::text LIKE 'clearing\_%'
    WHEN 'shortfall' THEN t.merchant_id = m.merchant_id AND m.debit = 'suspense' AND m.credit::text LIKE 'clearing\_%'
    ELSE (t.merchant_id = m.merchant_id OR m.cause ~ '^payout:.') AND (m.debit, m.credit::text) IN (
      SELECT 'available'::ledger_account, 'reserved' WHERE m.step = 'reserve'
      UNION ALL SELECT 'reserved', 'available' WHERE m.step = 'void'
      UNION ALL SELECT 'reserved', m.credit::text WHERE m.step = 'post' AND m.credit::text LIKE 'clearing\_%') END IS TRUE);

  RETURN QUERY
  SELECT 'references_are_unique', t.merchant_id, format('transaction:%s and transaction:%s have the same reference', other.id, t.id)
  FROM transaction t JOIN transaction other
    ON other.reference = t.reference AND other.merchant_id = t.merchant_id AND other.id < t.id
  WHERE all_of_it OR t.id = ANY (touched);
END $$;

-- Settle, as before, with the time after which a paid collection is asked about once more; null asks no more.
DROP FUNCTION settle_many;
CREATE FUNCTION settle_many(
  transaction_ids bigint[], to_statuses transaction_status[], sources text[], amounts bigint[], operator_references text[],
  reasons text[], messages text[], evidences jsonb[], late_check_ms bigint, reversal_check_ms bigint[] DEFAULT NULL
) RETURNS TABLE (
  place int, transaction_id bigint, moved boolean, from_status transaction_status, status transaction_status, late boolean
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM FROM transaction t WHERE t.id = ANY (transaction_ids) ORDER BY t.id FOR UPDATE;
  RETURN QUERY
  WITH item AS (
    SELECT i.*, i.ordinality::int AS place
    FROM unnest(transaction_ids, to_statuses, sources, amounts, operator_references, reasons, messages, evidences,
      reversal_check_ms)
      WITH ORDINALITY AS i (id, to_status, source, amount, operator_reference, reason, message, evidence, watch_ms, ordinality)
  ), chosen AS (
    SELECT DISTINCT ON (i.id) i.*, t.status AS was, t.status IN ('expired', 'failed', 'cancelled') AS was_over,
      t.transaction_type AS type
    FROM item i JOIN transaction t ON t.id = i.id
    ORDER BY i.id, i.place
  ), allowed AS (
    SELECT c.* FROM chosen c
    JOIN lifecycle_move m ON m.lifecycle = 'transaction' AND m.from_status = c.was::text AND m.to_status = c.to_status::text
    -- What is not an outcome (processing, reversed) is never settled: it takes other movements.
    WHERE c.to_status IN ('success', 'failed', 'cancelled', 'expired') AND (NOT c.was_over OR (c.type = 'pay' AND c.source IN ('initiate', 'query')))
  ), changed AS (
    UPDATE transaction t
    SET status = a.to_status, late = t.late OR a.was_over, settled_at = service_now(), evidence_source = a.source,
      operator_reference = coalesce(a.operator_reference, t.operator_reference),
      failure_reason = a.reason, failure_message = a.message,
      settled_amount = CASE WHEN a.to_status = 'success' THEN coalesce(a.amount, t.amount) ELSE t.settled_amount END
    FROM allowed a WHERE t.id = a.id
    RETURNING t.*, a.place, a.was, a.evidence, a.watch_ms
  ), credited AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'transaction:' || c.id, 'credit', clearing_account(c.payment_method), 'available',
      c.settled_amount, c.settled_at
    FROM changed c WHERE c.status = 'success' AND c.transaction_type = 'pay' ORDER BY c.merchant_id, c.id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id,
      CASE c.status WHEN 'success' THEN 'payment_received' ELSE 'payment_' || c.status::text END,
      jsonb_strip_nulls(jsonb_build_object(
        'transaction_id', c.id, 'reference', c.reference, 'amount', coalesce(c.settled_amount, c.amount),
        'currency', 'XOF', 'payment_method', c.payment_method, 'customer_phone', c.customer_phone, 'status', c.status,
        'previous_status', c.was, 'late', c.late, 'failure_reason', c.failure_reason)), c.settled_at
    FROM changed c ORDER BY c.merchant_id, c.id
  ), answered AS (
    UPDATE operator_request r
    SET state = CASE WHEN c.status = 'success' THEN 'settled'
          WHEN c.status = 'failed' AND c.evidence_source <> 'service' THEN 'refused'
          WHEN c.status = 'expired' THEN r.state ELSE 'closed' END::operator_request_state,
      -- What expired is still asked about for a while: late money is real. What a callback made due stays due.
      -- What was paid may be taken back: of some operators only a question tells.
      next_check_at = CASE
        WHEN c.status = 'success' THEN service_now() + c.watch_ms * interval '1 millisecond'
        WHEN c.status = 'expired' AND r.next_check_at <= service_now() THEN r.next_check_at
        WHEN c.status = 'expired' THEN service_now() + late_check_ms * interval '1 millisecond' END,
      evidence = coalesce(c.evidence, r.evidence)
    FROM changed c
    WHERE r.merchant_id = c.merchant_id AND r.transaction_id = c.id AND r.kind = 'collect'
  )
  SELECT i.place, i.id, c.id IS NOT NULL AND c.place = i.place, h.was, coalesce(c.status, t.status), coalesce(c.late, t.late)
  FROM item i
  JOIN transaction t ON t.id = i.id
  LEFT JOIN chosen h ON h.id = i.id
  LEFT JOIN changed c ON c.id = i.id
  ORDER BY i.place;
END $$;


REVOKE EXECUTE ON FUNCTION reverse_many, settle_many FROM PUBLIC;
GRANT EXECUTE ON FUNCTION reverse_many, settle_many TO payments_service;
