-- Written by hand: the tables stay as they are.

-- Sends again, as before; what had ended begins anew, so its thirty days do as well.
CREATE OR REPLACE FUNCTION replay_events(merchant int, endpoint int, first_place bigint, last_place bigint, places bigint[]) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  names text[];
  replayed int;
BEGIN
  SELECT e.events INTO names FROM webhook_endpoint e
  WHERE e.id = endpoint AND e.merchant_id = merchant AND e.removed_at IS NULL FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN 0; END IF;
  INSERT INTO webhook_delivery AS d (merchant_id, endpoint_id, position, type, created_at)
  SELECT v.merchant_id, endpoint, v.position, v.type, service_now()
  FROM event v
  WHERE v.merchant_id = merchant AND v.type = ANY (names)
    AND v.position = ANY (coalesce(places, ARRAY(SELECT generate_series(first_place, last_place))))
  ORDER BY v.position
  ON CONFLICT (endpoint_id, position) DO UPDATE
    SET status = 'pending', next_attempt_at = NULL, ended_at = NULL,
      attempt_count = CASE WHEN d.status = 'pending' THEN d.attempt_count ELSE 0 END,
      created_at = CASE WHEN d.status = 'pending' THEN d.created_at ELSE excluded.created_at END;
  GET DIAGNOSTICS replayed = ROW_COUNT;
  PERFORM wake_webhooks(ARRAY[endpoint]);
  RETURN replayed;
END $$;

-- Gives up and forgets, as before, but only what is still as it was found, and never while somebody else holds it: a
-- replay at that moment keeps what it makes pending.
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
