-- Records results about requests that go on. A request that ended meanwhile stays ended, and is asked about
-- after `late_ms`, because its money may still arrive. A request that a callback made due meanwhile stays
-- due, because the recorded answer may be older than the callback. Each result is about one send
-- (`attempts`), and about no later send. Without `waits` the function skips a request that another session
-- has locked: a caller that waits for one row lock must hold no other, otherwise two callers could deadlock.
-- Returns the ids that were not skipped.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION record_requests(
  ids bigint[],
  attempts smallint[],
  states operator_request_state[],
  handles jsonb[],
  next_check_ms bigint[],
  payment_urls text[],
  late_ms bigint,
  waits boolean
) RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  mine bigint[];
  -- The transactions that get the address of a payment page.
  paying bigint[];
BEGIN
  -- Locks rows in the same order as settling does, the transaction before its request: no deadlock.
  paying := ARRAY(SELECT r.transaction_id FROM unnest(ids, payment_urls) AS n (id, payment_url)
    JOIN LATERAL (SELECT r.transaction_id FROM operator_request r WHERE r.id = n.id LIMIT 1) r ON true
    WHERE n.payment_url IS NOT NULL);
  IF paying <> '{}' THEN
    PERFORM FROM transaction t WHERE t.id = ANY (paying) ORDER BY t.id FOR UPDATE;
  END IF;
  IF waits THEN
    mine := ARRAY(SELECT r.id FROM operator_request r WHERE r.id = ANY (ids) FOR NO KEY UPDATE);
  ELSE
    mine := ARRAY(SELECT r.id FROM operator_request r WHERE r.id = ANY (ids) FOR NO KEY UPDATE SKIP LOCKED);
  END IF;

  WITH result AS (
    SELECT DISTINCT ON (id) *
    FROM unnest(ids, attempts, states, handles, next_check_ms, payment_urls)
      WITH ORDINALITY AS n (id, attempt, state, handle, next_ms, payment_url, ordinal)
    -- Where one call has several results for a request, `accepted` counts, otherwise the last.
    ORDER BY id, state IS NOT DISTINCT FROM 'accepted' DESC, ordinal DESC
  ), recorded AS (
    UPDATE operator_request r
    SET state = CASE WHEN n.state IS NULL OR r.state IN ('refused', 'closed') THEN r.state
          WHEN n.next_ms IS NULL THEN 'closed'
          WHEN r.state = 'accepted' OR (n.state = 'unsent' AND n.attempt <> r.attempt) THEN r.state
          ELSE n.state END,
      -- The identity has a column of its own (`claimed_requests` adds it again).
      handle = r.handle || (n.handle - '{correlationId,clientRef}'::text[]),
      accepted_at = coalesce(r.accepted_at, CASE WHEN n.state = 'accepted' THEN service_now() END),
      -- No byte of an unsent request can still arrive: the service may send it again at once.
      fence_until = CASE WHEN n.state = 'unsent' AND n.attempt = r.attempt THEN now()
        ELSE r.fence_until END,
      -- Uses the present time, because a callback may have come while this statement waited for its locks.
      next_check_at = CASE
          WHEN r.next_check_at <= service_now() + (clock_timestamp() - now()) THEN r.next_check_at
          -- The request has ended here, and the operator still has it: its money may still arrive.
          WHEN n.state IS NOT NULL AND n.next_ms IS NOT NULL AND r.state IN ('refused', 'closed')
          THEN service_now() + late_ms * interval '1 millisecond'
          ELSE service_now() + n.next_ms * interval '1 millisecond' END
    FROM result n WHERE r.id = n.id AND r.state <> 'settled' AND r.id = ANY (mine)
    RETURNING r.transaction_id, n.payment_url
  )
  UPDATE transaction t SET payment_url = recorded.payment_url
  FROM recorded
  WHERE t.id = ANY (paying) AND t.id = recorded.transaction_id AND recorded.payment_url IS NOT NULL;
  RETURN mine;
END $$;
