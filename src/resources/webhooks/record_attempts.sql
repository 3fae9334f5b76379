-- Records the attempts of one endpoint's queue in their order, and updates their deliveries and the endpoint.
-- A failure counts only if the delivery is pending and has as many attempts as before this one (`counts`):
-- else it was resumed or replayed meanwhile. A success counts unless the event was delivered before. Disables
-- an endpoint after `disable_after` failures in a row and notifies its merchant in the same statement. A
-- success after five failures makes the oldest ten thousand waiting deliveries due at once; the others keep
-- their time.
-- @param waits ms until the next attempt; null after the last one. @param pause_ms ms that the
-- receiver asked to wait; null where it did not
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION record_attempts(
  endpoint int,
  delivery_ids bigint[],
  counts int[],
  successes boolean[],
  status_codes int[],
  errors text[],
  durations int[],
  answers text[],
  addresses text[],
  ats timestamptz[],
  waits bigint[],
  pause_ms bigint,
  disable_after int
) RETURNS TABLE (is_active boolean, failure_count int, is_disabled boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
  SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  moment timestamptz := service_now();
  endpoint_row webhook_endpoint;
  succeeded_at timestamptz;
  failed_at timestamptz;
  failed_from timestamptz;
  failed int;
BEGIN
  SELECT * INTO endpoint_row FROM webhook_endpoint w WHERE w.id = endpoint FOR NO KEY UPDATE;
  WITH item AS MATERIALIZED (
    SELECT * FROM unnest(delivery_ids, counts, successes, status_codes, errors, durations, answers,
      addresses, ats, waits)
      WITH ORDINALITY AS i (id, count, delivered, status_code, error, duration_ms, answer, address, at,
        wait_ms, ordinal)
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
      ended_at = CASE WHEN NOT was.counts THEN d.ended_at WHEN i.delivered OR i.wait_ms IS NULL
        THEN moment END
    FROM was JOIN item i USING (id)
    WHERE d.id = ANY (delivery_ids) AND d.id = was.id
    RETURNING d.id, d.merchant_id, d.attempts_total, was.counts
  ), logged AS (
    INSERT INTO webhook_attempt (delivery_id, nth, merchant_id, status_code, error, duration_ms, answer,
      address, at)
    SELECT m.id, m.attempts_total, m.merchant_id, i.status_code, i.error, i.duration_ms, i.answer, i.address,
      i.at
    FROM moved m JOIN item i USING (id) ORDER BY m.id
  ), counted AS MATERIALIZED (
    SELECT i.* FROM moved m JOIN item i USING (id) WHERE m.counts
  )
  SELECT max(c.at) FILTER (WHERE c.delivered), max(c.at) FILTER (WHERE NOT c.delivered),
    min(c.at) FILTER (WHERE NOT c.delivered AND c.ordinal > last.ordinal),
    count(*) FILTER (WHERE NOT c.delivered AND c.ordinal > last.ordinal)
  INTO succeeded_at, failed_at, failed_from, failed
  FROM counted c, (SELECT coalesce(max(ordinal), 0) AS ordinal FROM counted WHERE delivered) AS last;

  IF succeeded_at IS NULL THEN
    failed := failed + endpoint_row.failure_count;
    failed_from := coalesce(endpoint_row.failing_since, failed_from);
  END IF;
  UPDATE webhook_endpoint w
  SET failure_count = failed, failing_since = failed_from, last_success_at = coalesce(succeeded_at,
    w.last_success_at),
    last_failure_at = coalesce(failed_at, w.last_failure_at),
    paused_until = coalesce(moment + pause_ms * interval '1 millisecond', w.paused_until),
    is_active = w.is_active AND failed < disable_after,
    disabled_at = CASE WHEN w.is_active AND failed >= disable_after THEN moment ELSE w.disabled_at END,
    due_at = CASE WHEN w.is_active AND failed < disable_after THEN w.due_at END
  WHERE w.id = endpoint;
  IF endpoint_row.is_active AND failed >= disable_after THEN
    PERFORM append_events(ARRAY[(endpoint_row.merchant_id, 'security_alert', jsonb_build_object(
      'kind', 'webhook_disabled', 'webhook_id', endpoint, 'url', endpoint_row.url, 'message', format(
        'Webhook %s was disabled: %s attempts in a row failed. Enable it to receive the events that wait.',
          endpoint, failed)))::new_event], moment);
  ELSIF endpoint_row.failure_count >= 5 AND succeeded_at IS NOT NULL THEN
    UPDATE webhook_delivery d SET next_attempt_at = NULL
    WHERE d.id = ANY (ARRAY(
      SELECT o.id FROM webhook_delivery o
      WHERE o.endpoint_id = endpoint AND o.status = 'pending' AND o.next_attempt_at IS NOT NULL
        ORDER BY o.position LIMIT 10000));
  END IF;
  RETURN QUERY SELECT endpoint_row.is_active AND failed < disable_after, failed, endpoint_row.is_active
    AND failed >= disable_after;
END $$;
