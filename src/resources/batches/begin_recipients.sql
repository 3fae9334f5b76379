-- Takes the recipients that are next, and writes the request to the operator of each. Merchants take turns,
-- and so do the batches of one merchant. Only recipients of the operators in `open` are taken, of each
-- operator at most the number in `rooms`. One batch has at most `batch_max` running calls: those of the
-- calling process (`busy_...`), those of other processes (every call that is not in `own`), and the new ones.
-- The operators of a batch share these calls, so that a slow operator does not delay the others. A recipient
-- is taken only when its call can begin; until then it stays `pending`, so that a cancellation or a halt
-- still stops it.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION begin_recipients(
  open provider[],
  rooms int[],
  busy_batches int[],
  busy_operators provider[],
  batch_max int,
  fence_ms bigint,
  first_check_ms bigint,
  own bigint[],
  call_ms bigint
) RETURNS TABLE (
  recipient_id bigint,
  batch_id int,
  merchant_id int,
  operator provider,
  request_id bigint,
  correlation_id uuid,
  amount bigint,
  phone text,
  created_at timestamptz,
  is_orphan boolean
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
  -- If another process sent a request again while this one waited for the locks, that call takes a slot of
  -- its batch. Then take no recipients now: the next run counts that call.
  IF (SELECT count(*) FROM recipient_calls(fence_ms, call_ms, own) AS c WHERE c.batch_id = ANY (batches)) >
    (SELECT count(*) FROM unnest(others.batches) AS o (batch_id) WHERE o.batch_id = ANY (batches))
      THEN RETURN; END IF;
  RETURN QUERY
  WITH changed AS (
    UPDATE batch_recipient r SET status = 'processing', sent_at = at
    -- These conditions are read after the locks, in the statement that takes the recipients: they see every
    -- change that was committed while this transaction waited.
    FROM batch b JOIN merchant m ON m.id = b.merchant_id AND m.status = 'active'
    -- Do not add `sent_at IS NULL`: a plan made while the index of unsent recipients was empty would read the
    -- whole index.
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
      -- The operator executed this payment before the database was restored: ask about it, do not send it.
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
