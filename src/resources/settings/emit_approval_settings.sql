-- Writes a security alert if the approvals were switched on, loosened or switched off; otherwise nothing.
CREATE OR REPLACE FUNCTION emit_approval_settings(merchant int, was jsonb, actor text, address text)
  RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  now_is merchant;
  is_on boolean;
  is_looser boolean;
BEGIN
  SELECT m.* INTO now_is FROM merchant m WHERE m.id = $1;
  is_on := now_is.payouts_require_approval;
  is_looser := (was->>'payouts_require_approval')::boolean AND (NOT is_on
    OR now_is.approval_threshold > (was->>'approval_threshold')::bigint
    OR now_is.approvals_required < (was->>'approvals_required')::int
    OR (was->>'approvals_cover_deposits')::boolean AND NOT now_is.approvals_cover_deposits);
  IF NOT is_looser AND (NOT is_on OR (was->>'payouts_require_approval')::boolean) THEN RETURN; END IF;
  PERFORM append_events(ARRAY[(merchant, 'security_alert', jsonb_strip_nulls(jsonb_build_object(
    'kind', CASE WHEN NOT is_on THEN 'approvals_off' WHEN is_looser THEN 'approvals_loosened'
      ELSE 'approvals_on' END,
    'message', CASE WHEN is_on THEN
        format('%s changed the approvals: payouts and batches of %s XOF or more need %s approval(s). ', actor,
          now_is.approval_threshold, now_is.approvals_required) ||
            array_to_string(approval_gaps(merchant), ' ')
      ELSE format('%s switched approvals off: no payment needs an approval any more.', actor) END,
    'ip', address)))::new_event], service_now());
END $$;
