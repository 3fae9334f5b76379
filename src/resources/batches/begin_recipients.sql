-- Takes recipients whose turn it is, of each merchant and of each of its batches in turn, and writes what
-- their operators are to be asked: of the operators that can be asked now (`open`) as many as each has room
-- for. Of one batch so many at most that `batch_max` are under way, with the calls that are already: those of
-- whoever asks (`busy`), and those of others, all but the requests in `own`. Its operators share these, so
-- that none holds up another. Nobody is taken ahead of the call: who waits is `pending`, so that a cancel or
-- a halt still meets them.
CREATE OR REPLACE FUNCTION begin_recipients(
  open provider[], rooms int[], busy_batches int[], busy_operators provider[], batch_max int,
  fence_ms bigint, first_check_ms bigint, own bigint[], call_ms bigint
) RETURNS TABLE (
  recipient_id bigint, batch_id int, merchant_id int, operator provider, request_id bigint,
  correlation_id uuid, amount bigint, phone text, created_at timestamptz, is_orphan boolean
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
  SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  chosen bigint[];
  batches int[];
  merchants int[];
  others record;
BEGIN
  IF EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) THEN RETURN; END IF;
  SELECT coalesce(array_agg(c.batch_id), '{}') AS batches, coalesce(array_agg(c.operator), '{}') AS operators
    INTO others
  FROM recipient_calls(fence_ms, call_ms, own) AS c;
  busy_batches := busy_batches || others.batches;
  busy_operators := busy_operators || others.operators;
  SELECT array_agg(c.id), array_agg(DISTINCT c.batch_id), array_agg(DISTINCT c.merchant_id) INTO chosen,
    batches, merchants
  FROM recipients_due(open, rooms, busy_batches, busy_operators, batch_max) AS c
  WHERE c.ordinal <= c.room - cardinality(array_positions(others.operators, c.operator));
  IF chosen IS NULL THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock_shared(72707373, id) FROM (SELECT id FROM unnest(merchants) AS id
    ORDER BY id) AS merchant;
  PERFORM FROM batch b WHERE b.id = ANY (batches) ORDER BY b.id FOR UPDATE;
  -- What was sent again meanwhile has its place, and the next look sees it.
  IF (SELECT count(*) FROM recipient_calls(fence_ms, call_ms, own) AS c WHERE c.batch_id = ANY (batches)) >
    (SELECT count(*) FROM unnest(others.batches) AS o (batch_id) WHERE o.batch_id = ANY (batches))
      THEN RETURN; END IF;
  RETURN QUERY
  WITH changed AS (
    UPDATE batch_recipient r SET status = 'processing', sent_at = at
    -- Read after the locks and in the statement that takes: whoever waited meets what came meanwhile.
    FROM batch b JOIN merchant m ON m.id = b.merchant_id AND m.status = 'active'
    -- Not by what is unsent: its index would be read whole, by a plan made while that was empty.
    WHERE r.id = ANY (chosen) AND r.status = 'pending'
      AND b.id = r.batch_id AND b.id = ANY (batches) AND b.status = 'processing'
        AND b.cancel_requested_at IS NULL
      AND NOT EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL)
      AND NOT EXISTS (SELECT FROM merchant_balance o WHERE o.merchant_id = b.merchant_id AND o.receivable > 0)
    RETURNING r.*
  ), asked AS (
    INSERT INTO operator_request (merchant_id, recipient_id, provider, kind, correlation_id, amount, phone,
      state, fence_until, next_check_at, accepted_at, created_at)
    SELECT c.merchant_id, c.id, c.payment_method, 'disburse', c.correlation_id, c.amount, c.account,
      CASE WHEN orphan.found THEN 'accepted' ELSE 'sending' END::operator_request_state,
      now() + fence_ms * interval '1 millisecond',
      at + CASE WHEN orphan.found THEN 0 ELSE first_check_ms END * interval '1 millisecond',
      CASE WHEN orphan.found THEN at END, at
    FROM changed c
    LEFT JOIN LATERAL (
      -- What the operator did before a restore is only asked about.
      SELECT true AS found FROM operator_orphan o WHERE o.correlation_id = c.correlation_id LIMIT 1
    ) AS orphan ON true
    ORDER BY c.id
    RETURNING id, recipient_id, correlation_id, created_at, state
  ), counted AS (
    UPDATE batch b SET processing_count = b.processing_count + c.n, turn_at = clock_timestamp()
    FROM (SELECT c.batch_id, count(*)::int AS n FROM changed c GROUP BY c.batch_id) AS c
    WHERE b.id = ANY (batches) AND b.id = c.batch_id
  )
  SELECT c.id, c.batch_id, c.merchant_id, c.payment_method, a.id, a.correlation_id, c.amount, c.account,
    a.created_at, a.state = 'accepted'
  FROM changed c JOIN asked a ON a.recipient_id = c.id ORDER BY c.id;
END $$;

REVOKE EXECUTE ON FUNCTION begin_recipients FROM PUBLIC;
GRANT EXECUTE ON FUNCTION begin_recipients TO payments_service;
