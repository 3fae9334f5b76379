-- Emits a security alert: a member who joined the team or got a higher role less than 24 hours ago tried to
-- approve an item.
CREATE OR REPLACE FUNCTION emit_refused_approval(
  item approvable,
  member_id int,
  subject text,
  at timestamptz
) RETURNS void LANGUAGE sql AS $$
  SELECT append_events(ARRAY[(item.merchant_id, 'security_alert', jsonb_strip_nulls(jsonb_build_object(
    'kind', 'approval_refused', 'message',
      format('The approval of %s by member:%s was refused: this member joined the team or got a higher role '
      || 'less than 24 hours ago.', subject, member_id),
    'team_member_id', member_id, 'payout_id', item.payout_id, 'batch_id', item.batch_id,
    'settings_change_id', item.settings_change_id, 'transaction_id', item.transaction_id)))::new_event],
    at)
$$;
