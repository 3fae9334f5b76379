-- Ends waiting changes of the settings that were rejected, or not approved in time.
CREATE OR REPLACE FUNCTION end_settings_changes(ids int[], becomes approval_status, why jsonb DEFAULT '{}')
  RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH ended AS (
    UPDATE settings_change c SET approval = becomes WHERE c.id = ANY (ids) AND c.approval = 'pending'
    RETURNING c.*, c AS self)
  SELECT append_events(array_agg((merchant_id, 'settings_change_cancelled',
    settings_change_event_data(self) || why)::new_event ORDER BY id), service_now()) FROM ended
$$;
