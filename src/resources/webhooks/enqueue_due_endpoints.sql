-- Enqueues the endpoints that have due deliveries and that no process works on: a process that works on an
-- endpoint holds the session lock 72707376 of the endpoint. Of failing endpoints it enqueues at most
-- `failing_max`, so that they never fill all slots.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION enqueue_due_endpoints(healthy_max int, failing_max int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  at timestamptz := service_now();
BEGIN
  IF NOT EXISTS (SELECT FROM webhook_endpoint w WHERE w.due_at <= at) THEN RETURN 0; END IF;
  RETURN enqueue_each('webhooks.deliver', 'endpointId', ARRAY(
    WITH locked AS MATERIALIZED (
      SELECT l.objid FROM pg_locks l
      WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 72707376 AND l.objsubid = 2
        AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    ), due AS MATERIALIZED (
      SELECT w.id, w.due_at, w.failure_count FROM webhook_endpoint w
      WHERE w.due_at <= at AND w.id::oid NOT IN (SELECT objid FROM locked)
    )
    (SELECT id FROM due WHERE failure_count = 0 ORDER BY due_at LIMIT healthy_max)
    UNION ALL (SELECT id FROM due WHERE failure_count > 0 ORDER BY due_at LIMIT failing_max)));
END $$;
