-- Sets the approval settings of a merchant that are in `changes`; the others stay.
CREATE OR REPLACE FUNCTION apply_approvals(merchant int, changes jsonb) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE merchant m SET
    payouts_require_approval = coalesce((changes->>'payouts_require_approval')::boolean,
      m.payouts_require_approval),
    approval_threshold = coalesce((changes->>'approval_threshold')::bigint, m.approval_threshold),
    approvals_required = coalesce((changes->>'approvals_required')::smallint, m.approvals_required),
    approvals_cover_deposits = coalesce((changes->>'approvals_cover_deposits')::boolean,
      m.approvals_cover_deposits)
  WHERE m.id = $1 AND changes <> '{}'
$$;
