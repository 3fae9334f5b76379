-- Sets the time at which the endpoint's queue has its next due delivery, after the queue found no more. It
-- locks the same row as each transaction that adds a delivery, so that it misses none. @returns whether a
-- delivery is due already
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION reschedule_endpoint(endpoint int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  at timestamptz := date_trunc('milliseconds', service_now());
  endpoint_row webhook_endpoint;
  fresh bigint;
  oldest record;
  next_at timestamptz;
BEGIN
  SELECT * INTO endpoint_row FROM webhook_endpoint w WHERE w.id = endpoint FOR NO KEY UPDATE;
  IF endpoint_row.is_active AND endpoint_row.slot IS NOT NULL THEN
    SELECT d.position INTO fresh FROM webhook_delivery d
    WHERE d.endpoint_id = endpoint AND d.status = 'pending' AND d.next_attempt_at IS NULL ORDER BY d.position
      LIMIT 1;
    SELECT d.position, d.next_attempt_at INTO oldest FROM webhook_delivery d
    WHERE d.endpoint_id = endpoint AND d.status = 'pending' AND d.next_attempt_at IS NOT NULL
      ORDER BY d.position LIMIT 1;
    next_at := CASE
      WHEN oldest.position IS NULL OR fresh < oldest.position OR fresh IS NOT NULL
        AND endpoint_row.failure_count < 5
        THEN CASE WHEN fresh IS NOT NULL THEN at END
      WHEN endpoint_row.failure_count >= 5 THEN oldest.next_attempt_at
      ELSE (
        SELECT d.next_attempt_at FROM webhook_delivery d
        WHERE d.endpoint_id = endpoint AND d.status = 'pending' AND d.next_attempt_at IS NOT NULL
        ORDER BY d.next_attempt_at LIMIT 1) END;
    IF next_at < endpoint_row.paused_until THEN next_at := endpoint_row.paused_until; END IF;
  END IF;
  IF next_at IS DISTINCT FROM endpoint_row.due_at THEN
    UPDATE webhook_endpoint w SET due_at = next_at WHERE w.id = endpoint;
  END IF;
  RETURN coalesce(next_at <= at, false);
END $$;
