-- Changes the fields that are not null. When an endpoint is enabled, or an active one gets another address,
-- its count of failures becomes zero and its waiting deliveries are sent.
-- @returns whether the merchant has the endpoint
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION change_webhook(
  merchant int,
  endpoint int,
  address text,
  names text[],
  active boolean
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  is_anew boolean;
BEGIN
  SELECT coalesce(active, e.is_active) AND (coalesce(active, false) OR address <> e.url) INTO is_anew
  FROM webhook_endpoint e
  WHERE e.id = endpoint AND e.merchant_id = merchant AND e.removed_at IS NULL FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN false; END IF;
  -- The events until now are delivered by the names until now.
  WHILE names IS NOT NULL AND make_endpoint_deliveries(ARRAY[endpoint], 1000) LOOP END LOOP;
  UPDATE webhook_endpoint e
  SET url = coalesce(address, e.url), events = coalesce(names, e.events),
    is_active = coalesce(active, e.is_active), failure_count = CASE WHEN is_anew THEN 0
      ELSE e.failure_count END,
    disabled_at = CASE WHEN is_anew THEN NULL ELSE e.disabled_at END,
    paused_until = CASE WHEN is_anew THEN NULL ELSE e.paused_until END,
    due_at = CASE WHEN is_anew OR active IS FALSE THEN NULL ELSE e.due_at END,
    updated_at = service_now()
  WHERE e.id = endpoint;
  IF is_anew THEN PERFORM resume_webhook(endpoint); END IF;
  RETURN true;
END $$;
