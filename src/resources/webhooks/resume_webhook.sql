-- Resumes the deliveries of an endpoint that its merchant enabled or gave another address (the caller has set
-- it active): the pending deliveries are sent at once and in order. Deliveries of the last 30 days that
-- became `dead` since the endpoint began to fail are sent too, unless the receiver no longer wants the event
-- (410). At most the oldest ten thousand of each.
CREATE OR REPLACE FUNCTION resume_webhook(endpoint int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  endpoint_row webhook_endpoint;
BEGIN
  SELECT * INTO endpoint_row FROM webhook_endpoint w WHERE w.id = endpoint FOR NO KEY UPDATE;
  UPDATE webhook_delivery d SET status = 'pending', attempt_count = 0, next_attempt_at = NULL, ended_at = NULL
  WHERE d.id = ANY (ARRAY(
    SELECT o.id FROM webhook_delivery o
    WHERE o.endpoint_id = endpoint AND o.status = 'pending' AND o.next_attempt_at IS NOT NULL
      ORDER BY o.position LIMIT 10000))
  OR d.id = ANY (ARRAY(
    SELECT o.id FROM webhook_delivery o
    WHERE o.endpoint_id = endpoint AND o.status = 'dead' AND o.position IS NOT NULL
      AND o.ended_at >= endpoint_row.failing_since AND o.created_at > service_now() - interval '30 days'
      AND NOT EXISTS (
        SELECT FROM webhook_attempt a WHERE a.delivery_id = o.id AND a.nth = o.attempts_total
          AND a.status_code = 410)
    ORDER BY o.position LIMIT 10000));
  UPDATE webhook_endpoint w SET failing_since = NULL WHERE w.id = endpoint;
  PERFORM schedule_webhooks(ARRAY[endpoint]);
END $$;
