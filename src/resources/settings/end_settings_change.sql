-- Ends a waiting change of the settings that was rejected, or not approved in time.
CREATE OR REPLACE FUNCTION end_settings_change(id int, becomes approval_status, why jsonb DEFAULT '{}')
  RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH ended AS (
    UPDATE settings_change c SET approval = becomes WHERE c.id = $1 AND c.approval = 'pending' RETURNING c.*,
      c AS self)
  INSERT INTO event (merchant_id, type, data, created_at)
  SELECT merchant_id, 'settings_change_cancelled', settings_change_event_data(self) || why, service_now()
    FROM ended
$$;

REVOKE EXECUTE ON FUNCTION end_settings_change FROM PUBLIC;
