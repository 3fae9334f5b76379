-- Makes the deliveries of the events that were numbered last. `merchants` has the merchant of each event.
-- Each endpoint that names the type of an event gets a delivery of it. Deliveries of inactive endpoints wait.
CREATE OR REPLACE FUNCTION make_deliveries(merchants int[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  at timestamptz := service_now();
  endpoints int[];
BEGIN
  PERFORM FROM webhook_endpoint w WHERE w.merchant_id = ANY (merchants) AND w.slot IS NOT NULL ORDER BY w.id
    FOR NO KEY UPDATE;
  WITH made AS (
    INSERT INTO webhook_delivery (merchant_id, endpoint_id, position, type, created_at)
    SELECT e.merchant_id, w.id, e.position, e.type, at
    FROM (SELECT merchant_id, count(*) AS n FROM unnest(merchants) AS merchant_id GROUP BY merchant_id) AS m
    JOIN webhook_endpoint w ON w.merchant_id = m.merchant_id AND w.slot IS NOT NULL
    JOIN event_log_position h ON h.merchant_id = m.merchant_id
    JOIN event e ON e.merchant_id = m.merchant_id AND e.position > h.position - m.n
      AND e.type = ANY (w.events)
    ORDER BY w.id, e.position
    RETURNING endpoint_id
  )
  SELECT array_agg(DISTINCT endpoint_id) INTO endpoints FROM made;
  IF endpoints IS NOT NULL THEN PERFORM schedule_webhooks(endpoints); END IF;
END $$;

REVOKE EXECUTE ON FUNCTION make_deliveries FROM PUBLIC;
