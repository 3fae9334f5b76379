-- Settles collections: each collection ends only here, wherever its outcome came from. One commit changes the
-- status along the lifecycle (compare and set), books the credit, writes the event and ends the request to
-- the operator. The merchant is credited with at most the requested amount; an excess waits in `unallocated`
-- for the decision of a person (`decide_excess`). A collection that ended unpaid becomes paid only by the
-- operator's own answer, and is then late. An outcome may be true of one send only: the operator refused it,
-- or it never left. The number of this send stands in `attempts`; such an outcome ends nothing if the request
-- was sent again or accepted since. Of several outcomes for one transaction, only the first remaining one
-- is tried. `moved` is false where the change was not allowed or had happened; `status` is then the present
-- status. The plan is generic and has no nested loops: one outcome takes 580 us instead of 1,390.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION settle_many(
  transaction_ids bigint[],
  to_statuses transaction_status[],
  sources text[],
  amounts bigint[],
  operator_references text[],
  reasons text[],
  messages text[],
  evidences jsonb[],
  late_check_ms bigint,
  reversal_check_ms bigint[] DEFAULT NULL,
  attempts smallint[] DEFAULT NULL
) RETURNS TABLE (
  ordinal int,
  transaction_id bigint,
  moved boolean,
  from_status transaction_status,
  status transaction_status,
  late boolean
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
SET enable_nestloop = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  at timestamptz := service_now();
  -- Collections with an outcome that is true of one send only.
  fenced bigint[] := ARRAY(SELECT i.id FROM unnest(transaction_ids, attempts) AS i (id, attempt)
    WHERE i.attempt IS NOT NULL);
  event new_event[];
  events new_event[];
BEGIN
  PERFORM lock_collections(transaction_ids, fenced);
  FOR ordinal, transaction_id, moved, from_status, status, late, event IN
  WITH item AS MATERIALIZED (
    SELECT i.*, i.ordinality::int AS ordinal, i.attempt IS NOT NULL AND NOT EXISTS (
        SELECT FROM operator_request r
        WHERE r.transaction_id = ANY (fenced) AND r.transaction_id = i.id AND r.kind = 'collect'
          AND r.attempt = i.attempt AND r.state <> 'accepted') AS overtaken
    FROM unnest(transaction_ids, to_statuses, sources, amounts, operator_references, reasons, messages,
      evidences, reversal_check_ms, attempts)
      WITH ORDINALITY AS i (id, to_status, source, amount, operator_reference, reason, message, evidence,
        watch_ms, attempt, ordinality)
  ), locked AS MATERIALIZED (
    SELECT t.id, t.status, t.transaction_type, t.late FROM transaction t WHERE t.id = ANY (transaction_ids)
  ), chosen AS MATERIALIZED (
    SELECT DISTINCT ON (i.id) i.*, t.status AS was, t.transaction_type AS type,
      t.status IN ('expired', 'failed', 'cancelled') AS was_over
    FROM item i JOIN locked t ON t.id = i.id AND NOT i.overtaken
    ORDER BY i.id, i.ordinal
  ), allowed AS (
    SELECT c.* FROM chosen c
    JOIN lifecycle_move m ON m.lifecycle = 'transaction' AND m.from_status = c.was::text
      AND m.to_status = c.to_status::text
    -- Other functions set `processing` and `reversed`.
    WHERE c.type = 'pay' AND c.to_status IN ('success', 'failed', 'cancelled', 'expired')
      AND (NOT c.was_over OR c.source IN ('initiate', 'query'))
  ), changed AS (
    UPDATE transaction t
    SET status = a.to_status, late = t.late OR a.was_over, settled_at = at, evidence_source = a.source,
      operator_reference = coalesce(a.operator_reference, t.operator_reference),
      failure_reason = a.reason, failure_message = a.message,
      settled_amount = CASE WHEN a.to_status = 'success' THEN least(a.amount, t.amount)
        ELSE t.settled_amount END
    FROM allowed a WHERE t.id = a.id AND t.id = ANY (transaction_ids)
    RETURNING t.*, t AS self, a.ordinal, a.was, a.evidence, a.watch_ms,
      CASE WHEN a.to_status = 'success' THEN greatest(a.amount - t.amount, 0) END AS excess
  ), credited AS (
    INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'transaction:' || c.id, side.step, clearing_account(c.payment_method), side.account,
      side.amount, c.settled_at
    FROM changed c CROSS JOIN LATERAL (VALUES
      ('credit'::ledger_step, 'available'::ledger_account, c.settled_amount),
      ('excess'::ledger_step, 'unallocated'::ledger_account, c.excess)
    ) AS side (step, account, amount)
    WHERE c.status = 'success' AND side.amount > 0 ORDER BY c.merchant_id, c.id, side.step
  ), excepted AS (
    INSERT INTO settlement_exception (merchant_id, transaction_id, requested_amount, confirmed_amount,
      created_at)
    SELECT c.merchant_id, c.id, c.amount, c.amount + c.excess, c.settled_at
    FROM changed c WHERE c.status = 'success' AND c.excess > 0 ORDER BY c.merchant_id, c.id
  ), answered AS (
    UPDATE operator_request r
    SET state = CASE c.status WHEN 'expired' THEN r.state WHEN 'cancelled' THEN 'closed'
        ELSE request_end(c.status = 'success', c.evidence_source) END,
      -- A check that a callback made due stays due when the collection expires: the payment may be late.
      next_check_at = CASE WHEN c.status <> 'expired' THEN
          check_after_end(c.status = 'success', r.next_check_at, r.handle->>'claimed', at, c.watch_ms)
        WHEN r.next_check_at <= at + (clock_timestamp() - now()) THEN r.next_check_at
        ELSE at + late_check_ms * interval '1 millisecond' END,
      evidence = coalesce(c.evidence, r.evidence)
    FROM changed c
    WHERE r.transaction_id = c.id AND r.transaction_id = ANY (transaction_ids)
      AND r.merchant_id = c.merchant_id AND r.kind = 'collect'
  )
  SELECT i.ordinal, i.id, c.id IS NOT NULL AND c.ordinal = i.ordinal, h.status, coalesce(c.status, h.status),
    coalesce(c.late, h.late), CASE WHEN c.ordinal = i.ordinal THEN ARRAY[(c.merchant_id, CASE c.status
      WHEN 'success' THEN 'payment_received' ELSE 'payment_' || c.status::text END,
      payment_event_data(c.self, c.was, c.excess))::new_event] END
  FROM item i JOIN locked h ON h.id = i.id LEFT JOIN changed c ON c.id = i.id ORDER BY i.ordinal LOOP
    events := events || event;
    RETURN NEXT;
  END LOOP;
  PERFORM append_events(events || link_use_events(events), at);
END $$;
