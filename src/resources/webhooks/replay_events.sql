-- Makes events pending for an endpoint, again or for the first time: those between two positions of the log,
-- or at the given positions, if the endpoint names their type. A pending delivery becomes due at once. For an
-- ended delivery, the count of attempts and the thirty days start again. @returns how many
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION replay_events(
  merchant int,
  endpoint int,
  first_position bigint,
  last_position bigint,
  page_positions bigint[]
) RETURNS int
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
    AND v.position = ANY (coalesce(page_positions, ARRAY(SELECT generate_series(first_position,
      last_position))))
  ORDER BY v.position
  ON CONFLICT (endpoint_id, position) DO UPDATE
    SET status = 'pending', next_attempt_at = NULL, ended_at = NULL,
      attempt_count = CASE WHEN d.status = 'pending' THEN d.attempt_count ELSE 0 END,
      created_at = CASE WHEN d.status = 'pending' THEN d.created_at ELSE excluded.created_at END;
  GET DIAGNOSTICS replayed = ROW_COUNT;
  PERFORM schedule_webhooks(ARRAY[endpoint]);
  RETURN replayed;
END $$;
