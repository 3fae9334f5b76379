-- Written by hand: the tables stay as they are.

-- Deliveries of events to endpoints, sent by one lane per endpoint. Whoever adds to a lane or finds it empty holds the
-- endpoint's row, so that nothing is overlooked between the two.

-- Enqueues the lanes of these endpoints, in the caller's transaction, where no job waits for its turn already.
CREATE FUNCTION enqueue_lanes(endpoints int[]) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  specs graphile_worker.job_spec[] := ARRAY(
    SELECT ROW ('webhooks.deliver', json_build_object('endpointId', e), NULL, NULL, NULL, 'webhooks.deliver:' || e, NULL, NULL)
      ::graphile_worker.job_spec
    FROM unnest(endpoints) AS e
    WHERE NOT EXISTS (
      SELECT FROM graphile_worker._private_jobs j
      WHERE j.key = 'webhooks.deliver:' || e AND j.is_available AND j.run_at <= now())
    -- In one order, so that two that enqueue at once wait for each other at most.
    ORDER BY e);
BEGIN
  IF cardinality(specs) > 0 THEN PERFORM graphile_worker.add_jobs(specs); END IF;
  RETURN cardinality(specs);
END $$;

-- There is something to send to these endpoints: their lanes are due, where they were not, and enqueued. What fails again
-- and again (from the fifth time on) or asked to be left alone keeps the time that it has.
CREATE FUNCTION wake_webhooks(endpoint_ids int[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  at timestamptz := date_trunc('milliseconds', service_now());
  due int[];
BEGIN
  PERFORM FROM webhook_endpoint w WHERE w.id = ANY (endpoint_ids) ORDER BY w.id FOR NO KEY UPDATE;
  WITH woken AS (
    UPDATE webhook_endpoint w SET due_at = greatest(at, w.paused_until)
    WHERE w.id = ANY (endpoint_ids) AND w.is_active AND w.slot IS NOT NULL
      AND (w.due_at IS NULL OR w.failure_count < 5 AND w.due_at > greatest(at, w.paused_until))
    RETURNING w.id, w.due_at
  )
  SELECT array_agg(id) INTO due FROM woken WHERE due_at <= at;
  IF due IS NOT NULL THEN PERFORM enqueue_lanes(due); END IF;
END $$;

-- The lanes that are due and that nobody is at (each holds the session lock 72707376 of its endpoint), enqueued: retries,
-- probes, and what a process left behind. Of those that fail only so many, so that they never fill all places.
CREATE FUNCTION enqueue_due_lanes(healthy_max int, failing_max int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  at timestamptz := service_now();
BEGIN
  IF NOT EXISTS (SELECT FROM webhook_endpoint w WHERE w.due_at <= at) THEN RETURN 0; END IF;
  RETURN enqueue_lanes(ARRAY(
    WITH held AS MATERIALIZED (
      SELECT l.objid FROM pg_locks l
      WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 72707376 AND l.objsubid = 2
        AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    ), due AS MATERIALIZED (
      SELECT w.id, w.due_at, w.failure_count FROM webhook_endpoint w
      WHERE w.due_at <= at AND w.id::oid NOT IN (SELECT objid FROM held)
    )
    (SELECT id FROM due WHERE failure_count = 0 ORDER BY due_at LIMIT healthy_max)
    UNION ALL (SELECT id FROM due WHERE failure_count > 0 ORDER BY due_at LIMIT failing_max)));
END $$;

-- Notes what became of the calls of a lane, in their order: the attempts, what their deliveries became, how the endpoint
-- stands. A failure moves only the run that it was of (`counts`, attempts before it); what was delivered is. Disables an
-- endpoint that failed so often in a row, and tells its merchant in the same statement. A success after five failures
-- makes due at once what waits, of the oldest ten thousand; the rest comes at its time.
-- @param waits_ms until the next attempt; null: that was the last
-- @param pause_ms the receiver asked to be left alone so long; null where it did not
CREATE FUNCTION note_attempts(
  endpoint int, delivery_ids bigint[], counts int[], delivered boolean[], status_codes int[], errors text[], durations int[],
  answers text[], addresses text[], ats timestamptz[], waits_ms bigint[], pause_ms bigint, disable_after int
) RETURNS TABLE (is_active boolean, failure_count int, is_disabled boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  moment timestamptz := service_now();
  lane webhook_endpoint;
  succeeded_at timestamptz;
  failed_at timestamptz;
  failed_from timestamptz;
  failed int;
BEGIN
  SELECT * INTO lane FROM webhook_endpoint w WHERE w.id = endpoint FOR NO KEY UPDATE;
  WITH item AS MATERIALIZED (
    SELECT * FROM unnest(delivery_ids, counts, delivered, status_codes, errors, durations, answers, addresses, ats, waits_ms)
      WITH ORDINALITY AS i (id, count, delivered, status_code, error, duration_ms, answer, address, at, wait_ms, place)
  ), was AS MATERIALIZED (
    SELECT d.id, CASE WHEN i.delivered THEN d.status <> 'delivered'
      ELSE d.status = 'pending' AND d.attempt_count = i.count END AS counts
    FROM webhook_delivery d JOIN item i ON i.id = d.id
    WHERE d.id = ANY (delivery_ids) AND d.endpoint_id = endpoint
    ORDER BY d.id FOR UPDATE OF d
  ), moved AS (
    UPDATE webhook_delivery d
    SET attempts_total = d.attempts_total + 1,
      attempt_count = CASE WHEN was.counts THEN d.attempt_count + 1 ELSE d.attempt_count END,
      status = CASE WHEN NOT was.counts THEN d.status WHEN i.delivered THEN 'delivered'
        WHEN i.wait_ms IS NULL THEN 'dead' ELSE 'pending' END,
      next_attempt_at = CASE WHEN NOT was.counts THEN d.next_attempt_at
        WHEN NOT i.delivered THEN moment + i.wait_ms * interval '1 millisecond' END,
      ended_at = CASE WHEN NOT was.counts THEN d.ended_at WHEN i.delivered OR i.wait_ms IS NULL THEN moment END
    FROM was JOIN item i USING (id)
    WHERE d.id = ANY (delivery_ids) AND d.id = was.id
    RETURNING d.id, d.merchant_id, d.attempts_total, was.counts
  ), logged AS (
    INSERT INTO webhook_attempt (delivery_id, nth, merchant_id, status_code, error, duration_ms, answer, address, at)
    SELECT m.id, m.attempts_total, m.merchant_id, i.status_code, i.error, i.duration_ms, i.answer, i.address, i.at
    FROM moved m JOIN item i USING (id) ORDER BY m.id
  ), counted AS MATERIALIZED (
    SELECT i.* FROM moved m JOIN item i USING (id) WHERE m.counts
  )
  SELECT max(c.at) FILTER (WHERE c.delivered), max(c.at) FILTER (WHERE NOT c.delivered),
    min(c.at) FILTER (WHERE NOT c.delivered AND c.place > last.place),
    count(*) FILTER (WHERE NOT c.delivered AND c.place > last.place)
  INTO succeeded_at, failed_at, failed_from, failed
  FROM counted c, (SELECT coalesce(max(place), 0) AS place FROM counted WHERE delivered) AS last;

  IF succeeded_at IS NULL THEN
    failed := failed + lane.failure_count;
    failed_from := coalesce(lane.failing_since, failed_from);
  END IF;
  UPDATE webhook_endpoint w
  SET failure_count = failed, failing_since = failed_from, last_success_at = coalesce(succeeded_at, w.last_success_at),
    last_failure_at = coalesce(failed_at, w.last_failure_at),
    paused_until = coalesce(moment + pause_ms * interval '1 millisecond', w.paused_until),
    is_active = w.is_active AND failed < disable_after,
    disabled_at = CASE WHEN w.is_active AND failed >= disable_after THEN moment ELSE w.disabled_at END,
    due_at = CASE WHEN w.is_active AND failed < disable_after THEN w.due_at END
  WHERE w.id = endpoint;
  IF lane.is_active AND failed >= disable_after THEN
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT lane.merchant_id, 'security_alert', jsonb_build_object(
      'kind', 'webhook_disabled', 'webhook_id', endpoint, 'url', lane.url, 'message', format(
        'Webhook %s was disabled: %s attempts in a row failed. Enable it again and what waited is sent.', endpoint, failed)), moment;
  ELSIF lane.failure_count >= 5 AND succeeded_at IS NOT NULL THEN
    UPDATE webhook_delivery d SET next_attempt_at = NULL
    WHERE d.id = ANY (ARRAY(
      SELECT o.id FROM webhook_delivery o
      WHERE o.endpoint_id = endpoint AND o.status = 'pending' AND o.next_attempt_at IS NOT NULL ORDER BY o.position LIMIT 10000));
  END IF;
  RETURN QUERY SELECT lane.is_active AND failed < disable_after, failed, lane.is_active AND failed >= disable_after;
END $$;

-- The lane found nothing more that is due: says when it is, under the lock that whoever adds something takes too.
-- @returns whether something is due already
CREATE FUNCTION rest_lane(endpoint int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  at timestamptz := date_trunc('milliseconds', service_now());
  lane webhook_endpoint;
  fresh bigint;
  oldest record;
  next_at timestamptz;
BEGIN
  SELECT * INTO lane FROM webhook_endpoint w WHERE w.id = endpoint FOR NO KEY UPDATE;
  IF lane.is_active AND lane.slot IS NOT NULL THEN
    SELECT d.position INTO fresh FROM webhook_delivery d
    WHERE d.endpoint_id = endpoint AND d.status = 'pending' AND d.next_attempt_at IS NULL ORDER BY d.position LIMIT 1;
    SELECT d.position, d.next_attempt_at INTO oldest FROM webhook_delivery d
    WHERE d.endpoint_id = endpoint AND d.status = 'pending' AND d.next_attempt_at IS NOT NULL ORDER BY d.position LIMIT 1;
    next_at := CASE
      WHEN oldest.position IS NULL OR fresh < oldest.position OR fresh IS NOT NULL AND lane.failure_count < 5
        THEN CASE WHEN fresh IS NOT NULL THEN at END
      WHEN lane.failure_count >= 5 THEN oldest.next_attempt_at
      ELSE (
        SELECT d.next_attempt_at FROM webhook_delivery d
        WHERE d.endpoint_id = endpoint AND d.status = 'pending' AND d.next_attempt_at IS NOT NULL
        ORDER BY d.next_attempt_at LIMIT 1) END;
    IF next_at < lane.paused_until THEN next_at := lane.paused_until; END IF;
  END IF;
  IF next_at IS DISTINCT FROM lane.due_at THEN
    UPDATE webhook_endpoint w SET due_at = next_at WHERE w.id = endpoint;
  END IF;
  RETURN coalesce(next_at <= at, false);
END $$;

-- Its merchant enables an endpoint again (the caller has it active by now): what waits begins anew, at once and in order,
-- also what was given up since it began to fail, unless the receiver asked for that (410). Of the oldest ten thousand.
CREATE FUNCTION resume_webhook(endpoint int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  lane webhook_endpoint;
BEGIN
  SELECT * INTO lane FROM webhook_endpoint w WHERE w.id = endpoint FOR NO KEY UPDATE;
  UPDATE webhook_delivery d SET status = 'pending', attempt_count = 0, next_attempt_at = NULL, ended_at = NULL
  WHERE d.id = ANY (ARRAY(
    SELECT o.id FROM webhook_delivery o
    WHERE o.endpoint_id = endpoint AND o.status = 'pending' AND o.next_attempt_at IS NOT NULL ORDER BY o.position LIMIT 10000))
  OR d.id = ANY (ARRAY(
    SELECT o.id FROM webhook_delivery o
    WHERE o.endpoint_id = endpoint AND o.status = 'dead' AND o.position IS NOT NULL
      AND o.ended_at >= lane.failing_since AND o.created_at > service_now() - interval '30 days'
      AND NOT EXISTS (
        SELECT FROM webhook_attempt a WHERE a.delivery_id = o.id AND a.nth = o.attempts_total AND a.status_code = 410)
    ORDER BY o.position LIMIT 10000));
  UPDATE webhook_endpoint w SET failing_since = NULL WHERE w.id = endpoint;
  PERFORM wake_webhooks(ARRAY[endpoint]);
END $$;

-- One step of forgetting: what waited for `kept_days` is given up, what was done with `swept_days` ago goes, with its
-- attempts. Among the oldest `take` rows: what is younger is looked at when it is among them. Only what is still as it was
-- found, and never while somebody else holds it: a replay at that moment keeps what it makes pending.
-- @returns how many rows went or were given up
CREATE FUNCTION sweep_webhooks(take int, kept_days int, swept_days int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  at timestamptz := service_now();
  given_up int;
  old bigint[];
  gone int;
BEGIN
  WITH late AS (
    SELECT o.id FROM webhook_endpoint w CROSS JOIN LATERAL (
      (SELECT d.id, d.created_at FROM webhook_delivery d
        WHERE d.endpoint_id = w.id AND d.status = 'pending' AND d.next_attempt_at IS NULL ORDER BY d.position LIMIT 100)
      UNION ALL
      (SELECT d.id, d.created_at FROM webhook_delivery d
        WHERE d.endpoint_id = w.id AND d.status = 'pending' AND d.next_attempt_at IS NOT NULL ORDER BY d.position LIMIT 100)
    ) AS o
    WHERE o.created_at < at - kept_days * interval '1 day' LIMIT take
  ), dead AS (
    UPDATE webhook_delivery d SET status = 'dead', next_attempt_at = NULL, ended_at = at
    WHERE d.id = ANY (ARRAY(
      SELECT p.id FROM webhook_delivery p
      WHERE p.id = ANY (ARRAY(SELECT id FROM late)) AND p.status = 'pending' ORDER BY p.id FOR UPDATE SKIP LOCKED))
    RETURNING d.id
  )
  SELECT count(*) INTO given_up FROM dead;
  old := ARRAY(
    SELECT d.id FROM (
      SELECT o.id, o.ended_at FROM webhook_delivery o ORDER BY o.id LIMIT 10 * take) AS d
    WHERE d.ended_at < at - swept_days * interval '1 day' LIMIT take);
  old := ARRAY(
    SELECT d.id FROM webhook_delivery d
    WHERE d.id = ANY (old) AND d.ended_at < at - swept_days * interval '1 day' ORDER BY d.id FOR UPDATE SKIP LOCKED);
  DELETE FROM webhook_attempt a WHERE a.delivery_id = ANY (old);
  DELETE FROM webhook_delivery d WHERE d.id = ANY (old);
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN given_up + gone;
END $$;

REVOKE EXECUTE ON FUNCTION enqueue_lanes, wake_webhooks, enqueue_due_lanes, note_attempts, rest_lane, resume_webhook,
  sweep_webhooks FROM PUBLIC;
GRANT EXECUTE ON FUNCTION enqueue_due_lanes, note_attempts, rest_lane, sweep_webhooks TO payments_service;
