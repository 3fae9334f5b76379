-- Does one step of the clean-up: ends deliveries as `dead` that have been pending for `kept_days`, and
-- deletes deliveries that ended `swept_days` ago, with their attempts; at most `take` of each. It looks only
-- at the oldest 100 new and 100 retried deliveries of each endpoint, and at the oldest ten times `take` of
-- all deliveries. It skips rows that another transaction has locked and checks each row again under its lock,
-- so a replay at the same moment keeps its pending deliveries. @returns how many rows became `dead` or were
-- deleted
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION sweep_webhooks(take int, kept_days int, swept_days int) RETURNS int
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
        WHERE d.endpoint_id = w.id AND d.status = 'pending' AND d.next_attempt_at IS NULL ORDER BY d.position
          LIMIT 100)
      UNION ALL
      (SELECT d.id, d.created_at FROM webhook_delivery d
        WHERE d.endpoint_id = w.id AND d.status = 'pending' AND d.next_attempt_at IS NOT NULL
          ORDER BY d.position LIMIT 100)
    ) AS o
    WHERE o.created_at < at - kept_days * interval '1 day' LIMIT take
  ), dead AS (
    UPDATE webhook_delivery d SET status = 'dead', next_attempt_at = NULL, ended_at = at
    WHERE d.id = ANY (ARRAY(
      SELECT p.id FROM webhook_delivery p
      WHERE p.id = ANY (ARRAY(SELECT id FROM late)) AND p.status = 'pending' ORDER BY p.id
        FOR UPDATE SKIP LOCKED))
    RETURNING d.id
  )
  SELECT count(*) INTO given_up FROM dead;
  old := ARRAY(
    SELECT d.id FROM (
      SELECT o.id, o.ended_at FROM webhook_delivery o ORDER BY o.id LIMIT 10 * take) AS d
    WHERE d.ended_at < at - swept_days * interval '1 day' LIMIT take);
  old := ARRAY(
    SELECT d.id FROM webhook_delivery d
    WHERE d.id = ANY (old) AND d.ended_at < at - swept_days * interval '1 day' ORDER BY d.id
      FOR UPDATE SKIP LOCKED);
  DELETE FROM webhook_attempt a WHERE a.delivery_id = ANY (old);
  DELETE FROM webhook_delivery d WHERE d.id = ANY (old);
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN given_up + gone;
END $$;
