-- Settle, as before; a callback that came while the operator was asked, and claims something else than was answered, has
-- its own question: a payment may be taken back, or paid after all, in the very moment in which its outcome is noted.
CREATE OR REPLACE FUNCTION settle_many(
  transaction_ids bigint[], to_statuses transaction_status[], sources text[], amounts bigint[], operator_references text[],
  reasons text[], messages text[], evidences jsonb[], late_check_ms bigint, reversal_check_ms bigint[] DEFAULT NULL
) RETURNS TABLE (
  place int, transaction_id bigint, moved boolean, from_status transaction_status, status transaction_status, late boolean
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  at timestamptz := service_now();
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
    SET status = a.to_status, late = t.late OR a.was_over, settled_at = at, evidence_source = a.source,
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
    WHERE r.merchant_id = c.merchant_id AND r.transaction_id = c.id AND r.kind = 'collect'
  )
  SELECT i.place, i.id, c.id IS NOT NULL AND c.place = i.place, h.was, coalesce(c.status, t.status), coalesce(c.late, t.late)
  FROM item i
  JOIN transaction t ON t.id = i.id
  LEFT JOIN chosen h ON h.id = i.id
  LEFT JOIN changed c ON c.id = i.id
  ORDER BY i.place;
END $$;
