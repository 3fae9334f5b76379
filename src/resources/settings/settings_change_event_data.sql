-- The data of an event about a change of the settings that waits for approval.
CREATE OR REPLACE FUNCTION settings_change_event_data(settings_change) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('settings_change_id', $1.id, 'approval', $1.approval, 'changes', $1.after)
$$;
