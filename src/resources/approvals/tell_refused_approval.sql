-- Alerts a merchant: a member who joined the team or got a higher role less than 24 hours ago tried to
-- approve.
CREATE OR REPLACE FUNCTION tell_refused_approval(
  asked approval_asked, member_id int, subject text, at timestamptz
) RETURNS void LANGUAGE sql AS $$
  INSERT INTO event (merchant_id, type, data, created_at)
  VALUES (asked.merchant_id, 'security_alert', jsonb_strip_nulls(jsonb_build_object(
    'kind', 'approval_refused', 'message',
      format('member:%s tried to approve %s, and joined the team or got a higher role '
      || 'less than 24 hours ago: the approval was refused.', member_id, subject),
    'team_member_id', member_id, 'payout_id', asked.payout_id, 'batch_id', asked.batch_id,
    'settings_change_id', asked.settings_change_id, 'transaction_id', asked.transaction_id)), at)
$$;

REVOKE EXECUTE ON FUNCTION tell_refused_approval FROM PUBLIC;
