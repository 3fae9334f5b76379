-- Written by hand: what the schema language cannot say.

-- Who sends a request and goes on much later may hold a word that is worth nothing: behind its fence another has sent it
-- again, and its operator may have taken that. So what one send alone knows (its refusal, or that it gave up) names its
-- attempt and ends nothing once there is another, or once the operator is known to have it: that is asked about.
-- `attempts` holds null where the operator's word is about the request itself, whatever was sent. Locks are taken in the
-- order of notes: subjects, their requests, balances; so nobody takes the right to send while it is judged.

-- Settle, as before.
DROP FUNCTION settle_many;
CREATE FUNCTION settle_many(
  transaction_ids bigint[], to_statuses transaction_status[], sources text[], amounts bigint[], operator_references text[],
  reasons text[], messages text[], evidences jsonb[], late_check_ms bigint, reversal_check_ms bigint[] DEFAULT NULL,
  attempts smallint[] DEFAULT NULL
) RETURNS TABLE (
  place int, transaction_id bigint, moved boolean, from_status transaction_status, status transaction_status, late boolean
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
SET enable_nestloop = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  at timestamptz := service_now();
  -- What only the word of one send ends.
  fenced bigint[] := ARRAY(SELECT i.id FROM unnest(transaction_ids, attempts) AS i (id, attempt) WHERE i.attempt IS NOT NULL);
BEGIN
  PERFORM FROM transaction t WHERE t.id = ANY (transaction_ids) ORDER BY t.id FOR UPDATE;
  IF fenced <> '{}' THEN
    PERFORM FROM operator_request r WHERE r.transaction_id = ANY (fenced) ORDER BY r.transaction_id FOR NO KEY UPDATE;
  END IF;
  RETURN QUERY
  WITH item AS MATERIALIZED (
    SELECT i.*, i.ordinality::int AS place, i.attempt IS NOT NULL AND NOT EXISTS (
        SELECT FROM operator_request r
        WHERE r.transaction_id = ANY (fenced) AND r.transaction_id = i.id AND r.kind = 'collect'
          AND r.attempt = i.attempt AND r.state <> 'accepted') AS overtaken
    FROM unnest(transaction_ids, to_statuses, sources, amounts, operator_references, reasons, messages, evidences,
      reversal_check_ms, attempts)
      WITH ORDINALITY AS i (id, to_status, source, amount, operator_reference, reason, message, evidence, watch_ms, attempt,
        ordinality)
  ), held AS MATERIALIZED (
    SELECT t.id, t.status, t.transaction_type, t.late FROM transaction t WHERE t.id = ANY (transaction_ids)
  ), chosen AS MATERIALIZED (
    SELECT DISTINCT ON (i.id) i.*, t.status AS was, t.status IN ('expired', 'failed', 'cancelled') AS was_over,
      t.transaction_type AS type
    FROM item i JOIN held t ON t.id = i.id AND NOT i.overtaken
    ORDER BY i.id, i.place
  ), allowed AS (
    SELECT c.* FROM chosen c
    JOIN lifecycle_move m ON m.lifecycle = 'transaction' AND m.from_status = c.was::text AND m.to_status = c.to_status::text
    -- What is not an outcome (processing, reversed) is never settled: it takes other movements.
    WHERE c.type = 'pay' AND c.to_status IN ('success', 'failed', 'cancelled', 'expired')
      AND (NOT c.was_over OR c.source IN ('initiate', 'query'))
  ), changed AS (
    UPDATE transaction t
    SET status = a.to_status, late = t.late OR a.was_over, settled_at = at, evidence_source = a.source,
      operator_reference = coalesce(a.operator_reference, t.operator_reference),
      failure_reason = a.reason, failure_message = a.message,
      settled_amount = CASE WHEN a.to_status = 'success' THEN coalesce(a.amount, t.amount) ELSE t.settled_amount END
    FROM allowed a WHERE t.id = a.id AND t.id = ANY (transaction_ids)
    RETURNING t.*, a.place, a.was, a.evidence, a.watch_ms
  ), credited AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'transaction:' || c.id, 'credit', clearing_account(c.payment_method), 'available',
      c.settled_amount, c.settled_at
    FROM changed c WHERE c.status = 'success' ORDER BY c.merchant_id, c.id
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
      -- What a callback made due stays due, unless it claims what was answered; it may have come while this waited.
      -- What expired is still asked about for a while: late money is real.
      -- What was paid may be taken back: of some operators only a question tells.
      next_check_at = CASE
        WHEN r.next_check_at <= at + (clock_timestamp() - now()) AND (c.status = 'expired' OR r.handle->>'claimed' <>
          CASE c.status WHEN 'success' THEN 'settled' ELSE 'refused' END) THEN r.next_check_at
        WHEN c.status = 'success' THEN at + c.watch_ms * interval '1 millisecond'
        WHEN c.status = 'expired' THEN at + late_check_ms * interval '1 millisecond' END,
      evidence = coalesce(c.evidence, r.evidence)
    FROM changed c
    WHERE r.transaction_id = c.id AND r.transaction_id = ANY (transaction_ids) AND r.merchant_id = c.merchant_id AND r.kind = 'collect'
  )
  SELECT i.place, i.id, c.id IS NOT NULL AND c.place = i.place, h.status, coalesce(c.status, h.status), coalesce(c.late, h.late)
  FROM item i
  JOIN held h ON h.id = i.id
  LEFT JOIN changed c ON c.id = i.id
  ORDER BY i.place;
END $$;

-- Settles deposits, as before.
DROP FUNCTION settle_deposits;
CREATE FUNCTION settle_deposits(
  transaction_ids bigint[], to_statuses transaction_status[], sources text[], amounts bigint[], operator_references text[],
  reasons text[], messages text[], evidences jsonb[], reversal_check_ms bigint[],
  attempts smallint[] DEFAULT NULL
) RETURNS TABLE (place int, moved boolean, status transaction_status)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  -- Neither ever changes.
  merchants int[];
  originals bigint[];
  -- What only the word of one send ends.
  fenced bigint[] := ARRAY(SELECT i.id FROM unnest(transaction_ids, attempts) AS i (id, attempt) WHERE i.attempt IS NOT NULL);
BEGIN
  SELECT array_agg(DISTINCT t.merchant_id), array_remove(array_agg(DISTINCT t.refund_of_id), NULL) INTO merchants, originals
  FROM transaction t WHERE t.id = ANY (transaction_ids);
  PERFORM FROM transaction t WHERE t.id = ANY (transaction_ids || originals) ORDER BY t.id FOR UPDATE;
  IF fenced <> '{}' THEN
    PERFORM FROM operator_request r WHERE r.transaction_id = ANY (fenced) ORDER BY r.transaction_id FOR NO KEY UPDATE;
  END IF;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchants) ORDER BY b.merchant_id FOR UPDATE;
  RETURN QUERY
  WITH item AS MATERIALIZED (
    SELECT i.*, t.was, t.type, t.held,
      NOT i.overtaken AND row_number() OVER (PARTITION BY i.id, i.overtaken ORDER BY i.place) = 1 AS first
    FROM (
      SELECT i.*, i.attempt IS NOT NULL AND NOT EXISTS (
          SELECT FROM operator_request r
          WHERE r.transaction_id = ANY (fenced) AND r.transaction_id = i.id AND r.kind = 'disburse'
            AND r.attempt = i.attempt AND r.state <> 'accepted') AS overtaken
      FROM unnest(transaction_ids, to_statuses, sources, amounts, operator_references, reasons, messages, evidences,
        reversal_check_ms, attempts)
        WITH ORDINALITY AS i (id, to_status, source, amount, operator_reference, reason, message, evidence, watch_ms, attempt,
          place)
    ) AS i
    LEFT JOIN LATERAL (
      SELECT t.status AS was, t.transaction_type AS type, (
        SELECT m.amount FROM movement m WHERE m.cause = 'transaction:' || t.id AND m.step = 'reserve') AS held
      FROM transaction t WHERE t.id = i.id LIMIT 1
    ) AS t ON true
  ), changed AS (
    UPDATE transaction t
    SET status = a.to_status, settled_at = at, evidence_source = a.source,
      operator_reference = coalesce(a.operator_reference, t.operator_reference),
      failure_reason = a.reason, failure_message = a.message,
      settled_amount = CASE WHEN a.to_status = 'success' THEN least(coalesce(a.amount, a.held), a.held) END
    FROM item a
    WHERE t.id = ANY (transaction_ids) AND t.id = a.id AND a.first AND a.type = 'deposit' AND a.held IS NOT NULL
      AND a.was = 'processing' AND a.to_status IN ('success', 'failed') AND EXISTS (
        SELECT FROM lifecycle_move m
        WHERE m.lifecycle = 'transaction' AND m.from_status = a.was::text AND m.to_status = a.to_status::text)
    RETURNING t.*, a.place, a.was, a.held, a.evidence, a.watch_ms
  ), paid AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'transaction:' || c.id, side.step, 'reserved', side.account, side.amount, at
    FROM changed c CROSS JOIN LATERAL (VALUES
      ('post'::ledger_step, clearing_account(c.payment_method), c.settled_amount),
      ('release'::ledger_step, 'available'::ledger_account, c.held - c.settled_amount),
      ('void'::ledger_step, 'available'::ledger_account, CASE WHEN c.settled_amount IS NULL THEN c.held END)
    ) AS side (step, account, amount)
    WHERE side.amount <> 0 ORDER BY c.merchant_id, c.id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id, CASE c.status WHEN 'success' THEN 'deposit_completed' ELSE 'deposit_failed' END,
      jsonb_strip_nulls(jsonb_build_object(
        'transaction_id', c.id, 'reference', c.reference, 'amount', coalesce(c.settled_amount, c.amount),
        'currency', 'XOF', 'payment_method', c.payment_method, 'customer_phone', c.customer_phone, 'status', c.status,
        'previous_status', c.was, 'failure_reason', c.failure_reason, 'refund_of', c.refund_of_id)), at
    FROM changed c ORDER BY c.merchant_id, c.id
  ), answered AS (
    UPDATE operator_request r
    SET state = CASE WHEN c.status = 'success' THEN 'settled' WHEN c.evidence_source <> 'service' THEN 'refused'
          ELSE 'closed' END::operator_request_state,
      -- A callback that came meanwhile and claims something else than was answered has its own question.
      next_check_at = CASE
        WHEN r.next_check_at <= at + (clock_timestamp() - now()) AND r.handle->>'claimed' <>
          CASE c.status WHEN 'success' THEN 'settled' ELSE 'refused' END THEN r.next_check_at
        -- What was paid may be taken back: of some operators only a question tells.
        WHEN c.status = 'success' THEN at + c.watch_ms * interval '1 millisecond' END,
      evidence = coalesce(c.evidence, r.evidence)
    FROM changed c
    WHERE r.merchant_id = c.merchant_id AND r.transaction_id = c.id AND r.kind = 'disburse'
  )
  SELECT i.place::int, c.id IS NOT NULL, coalesce(now_.status, i.was)
  FROM item i
  LEFT JOIN changed c ON c.place = i.place
  LEFT JOIN changed now_ ON now_.id = i.id
  ORDER BY i.place;

  IF originals <> '{}' THEN
    WITH given AS MATERIALIZED (
      SELECT r.refund_of_id AS id, sum(r.settled_amount) AS amount
      FROM transaction r WHERE r.refund_of_id = ANY (originals) AND r.status = 'success' GROUP BY 1
    ), ended AS (
      UPDATE transaction t SET status = 'reversed' FROM given g
      WHERE t.id = ANY (originals) AND t.id = g.id AND t.status = 'success' AND t.settled_amount <= g.amount
      RETURNING t.*
    )
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT e.merchant_id, 'payment_reversed', jsonb_build_object(
      'transaction_id', e.id, 'reference', e.reference, 'amount', e.settled_amount, 'currency', 'XOF',
      'payment_method', e.payment_method, 'customer_phone', e.customer_phone, 'status', e.status,
      'previous_status', 'success', 'late', e.late, 'refunded', true), at
    FROM ended e ORDER BY e.merchant_id, e.id;
  END IF;
END $$;

-- Settles payouts, as before.
DROP FUNCTION settle_payouts;
CREATE FUNCTION settle_payouts(
  payout_ids bigint[], to_statuses payout_status[], sources text[], amounts bigint[], operator_references text[],
  reasons text[], messages text[], evidences jsonb[], reversal_check_ms bigint[],
  attempts smallint[] DEFAULT NULL
) RETURNS TABLE (place int, moved boolean, status payout_status)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  merchants int[] := ARRAY(SELECT DISTINCT p.merchant_id FROM payout p WHERE p.id = ANY (payout_ids));
  -- What only the word of one send ends.
  fenced bigint[] := ARRAY(SELECT i.id FROM unnest(payout_ids, attempts) AS i (id, attempt) WHERE i.attempt IS NOT NULL);
BEGIN
  PERFORM FROM payout p WHERE p.id = ANY (payout_ids) ORDER BY p.id FOR UPDATE;
  IF fenced <> '{}' THEN
    PERFORM FROM operator_request r WHERE r.payout_id = ANY (fenced) ORDER BY r.payout_id FOR NO KEY UPDATE;
  END IF;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchants) ORDER BY b.merchant_id FOR UPDATE;
  RETURN QUERY
  WITH item AS MATERIALIZED (
    SELECT i.*, p.was, p.held,
      NOT i.overtaken AND row_number() OVER (PARTITION BY i.id, i.overtaken ORDER BY i.place) = 1 AS first
    FROM (
      SELECT i.*, i.attempt IS NOT NULL AND NOT EXISTS (
          SELECT FROM operator_request r
          WHERE r.payout_id = ANY (fenced) AND r.payout_id = i.id
            AND r.attempt = i.attempt AND r.state <> 'accepted') AS overtaken
      FROM unnest(payout_ids, to_statuses, sources, amounts, operator_references, reasons, messages, evidences,
        reversal_check_ms, attempts)
        WITH ORDINALITY AS i (id, to_status, source, amount, operator_reference, reason, message, evidence, watch_ms, attempt,
          place)
    ) AS i
    LEFT JOIN LATERAL (
      SELECT p.status AS was, (
        SELECT m.amount FROM movement m WHERE m.cause = 'payout:' || p.id AND m.step = 'reserve') AS held
      FROM payout p WHERE p.id = i.id LIMIT 1
    ) AS p ON true
  ), changed AS (
    UPDATE payout p
    SET status = a.to_status, settled_at = at, evidence_source = a.source,
      operator_reference = coalesce(a.operator_reference, p.operator_reference),
      failure_reason = a.reason, failure_message = a.message,
      settled_amount = CASE WHEN a.to_status = 'completed' THEN least(coalesce(a.amount, a.held), a.held) END
    FROM item a
    WHERE p.id = ANY (payout_ids) AND p.id = a.id AND a.first AND a.held IS NOT NULL
      AND a.was = 'processing' AND a.to_status IN ('completed', 'failed') AND EXISTS (
        SELECT FROM lifecycle_move m
        WHERE m.lifecycle = 'payout' AND m.from_status = a.was::text AND m.to_status = a.to_status::text)
    RETURNING p.*, p AS self, a.place, a.was, a.held, a.evidence, a.watch_ms
  ), paid AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'payout:' || c.id, side.step, 'reserved', side.account, side.amount, at
    FROM changed c CROSS JOIN LATERAL (VALUES
      ('post'::ledger_step, clearing_account(c.payment_method), c.settled_amount),
      ('release'::ledger_step, 'available'::ledger_account, c.held - c.settled_amount),
      ('void'::ledger_step, 'available'::ledger_account, CASE WHEN c.settled_amount IS NULL THEN c.held END)
    ) AS side (step, account, amount)
    WHERE side.amount <> 0 ORDER BY c.merchant_id, c.id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id, 'payout_' || c.status, payout_told(c.self, c.was), at FROM changed c ORDER BY c.merchant_id, c.id
  ), answered AS (
    UPDATE operator_request r
    SET state = CASE WHEN c.status = 'completed' THEN 'settled' WHEN c.evidence_source <> 'service' THEN 'refused'
          ELSE 'closed' END::operator_request_state,
      -- A callback that came meanwhile and claims something else than was answered has its own question.
      next_check_at = CASE
        WHEN r.next_check_at <= at + (clock_timestamp() - now()) AND r.handle->>'claimed' <>
          CASE c.status WHEN 'completed' THEN 'settled' ELSE 'refused' END THEN r.next_check_at
        -- What was paid may be taken back: of some operators only a question tells.
        WHEN c.status = 'completed' THEN at + c.watch_ms * interval '1 millisecond' END,
      evidence = coalesce(c.evidence, r.evidence)
    FROM changed c WHERE r.payout_id = ANY (payout_ids) AND r.payout_id = c.id
  )
  SELECT i.place::int, c.id IS NOT NULL, coalesce(now_.status, i.was)
  FROM item i
  LEFT JOIN changed c ON c.place = i.place
  LEFT JOIN changed now_ ON now_.id = i.id
  ORDER BY i.place;
END $$;

REVOKE EXECUTE ON FUNCTION settle_many, settle_deposits, settle_payouts FROM PUBLIC;
GRANT EXECUTE ON FUNCTION settle_many, settle_deposits, settle_payouts TO payments_service;
