-- Written by hand: the tables stay as they are.

-- What merchants do with their endpoints; each function is told whose it is.

-- Registers an endpoint in the first of the merchant's free places; whoever else takes it at the same moment makes this
-- one look again. Begun again for the same effect it is the one that is there. Without a place there is no id.
CREATE FUNCTION register_webhook(
  merchant int, endpoint int, address text, names text[], sealed bytea, effect text, places int
) RETURNS TABLE (id int, secret_sealed bytea) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  free smallint;
BEGIN
  LOOP
    RETURN QUERY SELECT e.id, e.secret_sealed FROM webhook_endpoint e
      WHERE e.made_for = effect AND e.merchant_id = merchant AND e.removed_at IS NULL;
    IF FOUND THEN RETURN; END IF;
    SELECT min(place) INTO free FROM generate_series(1, places) AS place
    WHERE NOT EXISTS (SELECT FROM webhook_endpoint e WHERE e.merchant_id = merchant AND e.slot = place);
    IF free IS NULL THEN
      RETURN QUERY SELECT NULL::int, NULL::bytea;
      RETURN;
    END IF;
    RETURN QUERY INSERT INTO webhook_endpoint AS e
        (id, merchant_id, slot, url, events, secret_sealed, made_for, created_at, updated_at)
      VALUES (endpoint, merchant, free, address, names, sealed, effect, at, at)
      ON CONFLICT DO NOTHING RETURNING e.id, e.secret_sealed;
    IF FOUND THEN RETURN; END IF;
    -- What was made for this effect was removed since: it is not made anew.
    IF EXISTS (SELECT FROM webhook_endpoint e WHERE e.made_for = effect AND e.merchant_id = merchant AND e.removed_at IS NOT NULL) THEN
      RETURN;
    END IF;
  END LOOP;
END $$;

-- Changes what is not null. An endpoint that is enabled, or has another address, begins anew.
CREATE FUNCTION change_webhook(merchant int, endpoint int, address text, names text[], active boolean) RETURNS SETOF int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  is_anew boolean;
BEGIN
  SELECT coalesce(active, e.is_active) AND (coalesce(active, false) OR address <> e.url) INTO is_anew
  FROM webhook_endpoint e
  WHERE e.id = endpoint AND e.merchant_id = merchant AND e.removed_at IS NULL FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  UPDATE webhook_endpoint e
  SET url = coalesce(address, e.url), events = coalesce(names, e.events), is_active = coalesce(active, e.is_active),
    failure_count = CASE WHEN is_anew THEN 0 ELSE e.failure_count END,
    disabled_at = CASE WHEN is_anew THEN NULL ELSE e.disabled_at END,
    paused_until = CASE WHEN is_anew THEN NULL ELSE e.paused_until END,
    due_at = CASE WHEN is_anew OR active IS FALSE THEN NULL ELSE e.due_at END,
    updated_at = service_now()
  WHERE e.id = endpoint;
  IF is_anew THEN PERFORM resume_webhook(endpoint); END IF;
  RETURN NEXT endpoint;
END $$;

-- Takes an endpoint away from its merchant; its deliveries stay on record, and what was pending is sent no more.
CREATE FUNCTION remove_webhook(merchant int, endpoint int) RETURNS SETOF int
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE webhook_endpoint
  SET slot = NULL, is_active = false, due_at = NULL, removed_at = service_now(), updated_at = service_now()
  WHERE id = endpoint AND merchant_id = merchant AND removed_at IS NULL
  RETURNING id
$$;

-- Gives an endpoint a new secret, once per effect. While an old one still holds it stays the same.
CREATE FUNCTION rotate_webhook_secret(merchant int, endpoint int, sealed bytea, effect text, overlap_ms bigint)
RETURNS TABLE (secret_sealed bytea) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
BEGIN
  UPDATE webhook_endpoint e
  SET secret_sealed = sealed, rotated_for = effect, updated_at = at,
    previous_secret_sealed = CASE
      WHEN overlap_ms = 0 THEN NULL
      WHEN e.previous_secret_until > at THEN e.previous_secret_sealed
      ELSE e.secret_sealed END,
    previous_secret_until = CASE WHEN overlap_ms > 0 THEN at + overlap_ms * interval '1 millisecond' END
  WHERE e.id = endpoint AND e.merchant_id = merchant AND e.removed_at IS NULL
    AND (effect IS NULL OR e.rotated_for IS DISTINCT FROM effect);
  RETURN QUERY SELECT e.secret_sealed FROM webhook_endpoint e
    WHERE e.id = endpoint AND e.merchant_id = merchant AND e.removed_at IS NULL;
END $$;

-- Makes events pending for an endpoint again, or for the first time: those between two places of the log, or at some; of
-- the types that it names. What is pending already waits no longer; what had ended begins anew, and so do its thirty days.
-- @returns how many
CREATE FUNCTION replay_events(merchant int, endpoint int, first_place bigint, last_place bigint, places bigint[]) RETURNS int
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

-- Records a sample that was sent, and what came of it; it says nothing for or against the endpoint.
CREATE FUNCTION record_webhook_test(
  merchant int, endpoint int, delivery bigint, sent_at timestamptz, delivered boolean, status_code int, error text,
  duration_ms int, answer text, address text
) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH told AS (
    UPDATE webhook_endpoint e
    SET last_success_at = CASE WHEN delivered THEN sent_at ELSE e.last_success_at END,
      last_failure_at = CASE WHEN delivered THEN e.last_failure_at ELSE sent_at END
    WHERE e.id = endpoint AND e.merchant_id = merchant
  ), kept AS (
    INSERT INTO webhook_delivery
      (id, merchant_id, endpoint_id, type, status, attempt_count, attempts_total, ended_at, created_at)
    VALUES (delivery, merchant, endpoint, 'test',
      CASE WHEN delivered THEN 'delivered' ELSE 'dead' END::webhook_delivery_status, 1, 1, service_now(), sent_at)
  )
  INSERT INTO webhook_attempt (delivery_id, nth, merchant_id, status_code, error, duration_ms, answer, address, at)
  VALUES (delivery, 1, merchant, status_code, error, duration_ms, answer, address, sent_at)
$$;

REVOKE EXECUTE ON FUNCTION register_webhook, change_webhook, remove_webhook, rotate_webhook_secret, replay_events,
  record_webhook_test FROM PUBLIC;
GRANT EXECUTE ON FUNCTION register_webhook, change_webhook, remove_webhook, rotate_webhook_secret, replay_events,
  record_webhook_test TO payments_service;
