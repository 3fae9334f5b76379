-- Makes the deliveries of these endpoints for the events after `delivered_to`, and moves `delivered_to` in
-- the same transaction, so that no event is left out. Each endpoint that names the type of an event gets a
-- delivery of it. Deliveries of inactive endpoints wait. It reads at most `take` events.
-- @returns whether deliveries may remain to be made
CREATE OR REPLACE FUNCTION make_endpoint_deliveries(endpoint_ids int[], take int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  at timestamptz := service_now();
  remaining int := take;
  to_read record;
  n int;
  upto bigint;
  with_new int[] := '{}';
BEGIN
  FOR to_read IN
    SELECT w.id, w.merchant_id, w.events, w.delivered_to AS after
    FROM webhook_endpoint w WHERE w.id = ANY (endpoint_ids) AND w.slot IS NOT NULL ORDER BY w.id
    FOR NO KEY UPDATE
  LOOP
    SELECT count(*), max(e.position) INTO n, upto FROM (
      SELECT v.position FROM event v WHERE v.merchant_id = to_read.merchant_id AND v.position > to_read.after
      ORDER BY v.position LIMIT remaining) AS e;
    CONTINUE WHEN n = 0;
    INSERT INTO webhook_delivery (merchant_id, endpoint_id, position, type, created_at)
    SELECT e.merchant_id, to_read.id, e.position, e.type, at FROM event e
    WHERE e.merchant_id = to_read.merchant_id AND e.position > to_read.after AND e.position <= upto
      AND e.type = ANY (to_read.events)
    ORDER BY e.position
    -- `replay_events` may have made it already.
    ON CONFLICT (endpoint_id, position) DO NOTHING;
    IF FOUND THEN with_new := with_new || to_read.id; END IF;
    UPDATE webhook_endpoint w SET delivered_to = upto WHERE w.id = to_read.id;
    remaining := remaining - n;
    EXIT WHEN remaining = 0;
  END LOOP;
  IF with_new <> '{}' THEN PERFORM schedule_webhooks(with_new); END IF;
  RETURN remaining = 0;
END $$;
