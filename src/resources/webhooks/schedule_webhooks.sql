-- Makes these endpoints due and enqueues their queues, because there are new deliveries. An endpoint keeps
-- the due time that it has if five or more attempts failed in a row, or while its receiver asked to wait.
CREATE OR REPLACE FUNCTION schedule_webhooks(endpoint_ids int[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  at timestamptz := date_trunc('milliseconds', service_now());
  due int[];
BEGIN
  PERFORM FROM webhook_endpoint w WHERE w.id = ANY (endpoint_ids) ORDER BY w.id FOR NO KEY UPDATE;
  WITH scheduled AS (
    UPDATE webhook_endpoint w SET due_at = greatest(at, w.paused_until)
    WHERE w.id = ANY (endpoint_ids) AND w.is_active AND w.slot IS NOT NULL
      AND (w.due_at IS NULL OR w.failure_count < 5 AND w.due_at > greatest(at, w.paused_until))
    RETURNING w.id, w.due_at
  )
  SELECT array_agg(id) INTO due FROM scheduled WHERE due_at <= at;
  IF due IS NOT NULL THEN PERFORM enqueue_each('webhooks.deliver', 'endpointId', due); END IF;
END $$;
