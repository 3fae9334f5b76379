-- Returns the fields of a payout, a batch, a deposit or a change of the settings that matter for its
-- approval, in one form for all kinds (`approvable`).
CREATE OR REPLACE FUNCTION approvable_of(batch) RETURNS approvable LANGUAGE sql STABLE AS $$
  SELECT $1.merchant_id, NULL::bigint, $1.id, $1.status = 'pending_approval', $1.approval, $1.status::text,
    $1.approval_digest, $1.approval_expires_at, $1.approvals_required::int, $1.maker_member_ids, NULL::int,
      NULL::bigint
$$;

CREATE OR REPLACE FUNCTION approvable_of(deposit_approval) RETURNS approvable LANGUAGE sql STABLE AS $$
  SELECT $1.merchant_id, NULL::bigint, NULL::int, $1.approval = 'pending', $1.approval, $1.approval::text,
    $1.approval_digest, $1.approval_expires_at, $1.approvals_required::int,
      ARRAY[coalesce($1.maker_member_id, 0)], NULL::int, $1.transaction_id
$$;

CREATE OR REPLACE FUNCTION approvable_of(payout) RETURNS approvable LANGUAGE sql STABLE AS $$
  SELECT $1.merchant_id, $1.id, NULL::int, $1.status = 'pending' AND $1.approval = 'pending', $1.approval,
    $1.status::text, $1.approval_digest, $1.approval_expires_at, $1.approvals_required::int,
    ARRAY[coalesce($1.maker_member_id, 0)], NULL::int, NULL::bigint
$$;

CREATE OR REPLACE FUNCTION approvable_of(settings_change) RETURNS approvable LANGUAGE sql STABLE AS $$
  SELECT $1.merchant_id, NULL::bigint, NULL::int, $1.approval = 'pending', $1.approval, $1.approval::text,
    $1.approval_digest, $1.approval_expires_at, $1.approvals_required::int, ARRAY[$1.maker_member_id], $1.id,
      NULL::bigint
$$;
