-- As before, but that it holds the links that its transactions pay by, in their order: `note_link_use` comes to them in any.
CREATE OR REPLACE FUNCTION settle_many(
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
  links int[];
BEGIN
  -- All are held: a condition on the link would choose which.
  links := array_remove(ARRAY(
    SELECT t.payment_link_id FROM transaction t WHERE t.id = ANY (transaction_ids) ORDER BY t.id FOR UPDATE), NULL);
  IF links <> '{}' THEN PERFORM FROM payment_link l WHERE l.id = ANY (links) ORDER BY l.id FOR NO KEY UPDATE; END IF;
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

-- Proves what payment links count.
CREATE FUNCTION audit_links(whole boolean) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_custom_plan SET jit = off
SET work_mem = '64MB' SET enable_seqscan = on AS $$
#variable_conflict use_column
DECLARE
  since audit_point := (SELECT p FROM audit_point p WHERE NOT whole);
  since_event bigint := coalesce(since.event_id, 0);
  before_event bigint := coalesce(since.event_id_before, 0);
  all_of_it boolean := since IS NULL;
  touched int[];
BEGIN
  IF NOT EXISTS (SELECT FROM payment_link) THEN RETURN; END IF;
  IF NOT all_of_it THEN
    touched := ARRAY(
      SELECT t.payment_link_id FROM event e JOIN transaction t ON t.id = (e.data->>'transaction_id')::bigint
      WHERE e.id > since_event AND t.payment_link_id IS NOT NULL
      UNION SELECT (e.data->>'payment_link_id')::int FROM event e WHERE e.id > since_event AND e.type = 'payment_link_used');
  END IF;

  RETURN QUERY
  WITH found AS (
    SELECT t.payment_link_id, min(t.merchant_id) AS merchant_id, max(t.merchant_id) AS merchant_id_too,
      count(*) FILTER (WHERE t.status IN ('success', 'reversed')) AS used,
      count(*) FILTER (WHERE t.status IN ('pending', 'processing')) AS open
    FROM transaction t WHERE t.payment_link_id IS NOT NULL AND (all_of_it OR t.payment_link_id = ANY (touched))
    GROUP BY t.payment_link_id
  )
  SELECT 'links_are_counted', l.merchant_id, format('payment_link:%s counts %s paid and %s open, and %s and %s are there', l.id,
    l.usage_count, l.open_count, coalesce(f.used, 0), coalesce(f.open, 0))
  FROM payment_link l LEFT JOIN found f ON f.payment_link_id = l.id
  WHERE (all_of_it OR l.id = ANY (touched)) AND (l.merchant_id, l.merchant_id, l.usage_count, l.open_count)
    IS DISTINCT FROM (coalesce(f.merchant_id, l.merchant_id), coalesce(f.merchant_id_too, l.merchant_id), coalesce(f.used, 0),
      coalesce(f.open, 0));

  -- Each payment by a link is told of once.
  RETURN QUERY
  WITH told AS (
    SELECT (e.data->>'transaction_id')::bigint AS id, count(*) AS times, min(e.merchant_id) AS merchant_id,
      min((e.data->>'payment_link_id')::int) AS link, min((e.data->>'amount')::bigint) AS amount, max(e.id) AS last
    FROM event e WHERE e.type = 'payment_link_used' AND e.id > CASE WHEN all_of_it THEN 0 ELSE before_event END GROUP BY 1
  ), paid AS (
    SELECT t.* FROM transaction t WHERE all_of_it AND t.payment_link_id IS NOT NULL AND t.status IN ('success', 'reversed')
    UNION ALL
    SELECT t.* FROM event e JOIN transaction t ON t.id = (e.data->>'transaction_id')::bigint
    WHERE NOT all_of_it AND e.type = 'payment_received' AND e.id > since_event AND t.payment_link_id IS NOT NULL
  )
  SELECT 'events_tell_every_change', coalesce(p.merchant_id, told.merchant_id),
    format('%s events tell that payment_link:%s was used by transaction:%s', coalesce(told.times, 0),
      coalesce(p.payment_link_id, told.link), coalesce(p.id, told.id))
  FROM paid p FULL JOIN told ON told.id = p.id
  WHERE CASE WHEN p.id IS NULL THEN told.last > since_event AND NOT EXISTS (
      SELECT FROM transaction t
      WHERE t.id = told.id AND t.payment_link_id = told.link AND t.status IN ('success', 'reversed'))
    ELSE (told.times, told.merchant_id, told.link, told.amount)
      IS DISTINCT FROM (1, p.merchant_id, p.payment_link_id, p.settled_amount) END;
END $$;

CREATE OR REPLACE FUNCTION audit_ledger(whole boolean) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  RETURN QUERY SELECT * FROM audit_books(whole);
  RETURN QUERY SELECT * FROM audit_disbursements(whole);
  RETURN QUERY SELECT * FROM audit_batches(whole);
  RETURN QUERY SELECT * FROM audit_links(whole);
END $$;

REVOKE EXECUTE ON FUNCTION audit_links FROM PUBLIC;
