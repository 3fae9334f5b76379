-- Returns the approval settings of a merchant, with their names in REST.
CREATE OR REPLACE FUNCTION approval_settings(merchant) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('payouts_require_approval', $1.payouts_require_approval, 'approval_threshold',
    $1.approval_threshold, 'approvals_required', $1.approvals_required, 'approvals_cover_deposits',
      $1.approvals_cover_deposits)
$$;
