-- Returns the number of approvals that count now. An approval counts if its digest is the present digest, and
-- if its member may still approve and is no maker. While a maker is unknown, no approval counts: the unknown
-- maker may be one of the approvers.
CREATE OR REPLACE FUNCTION approvals_of(approvable) RETURNS int LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp AS $$
  SELECT count(*)::int FROM approval_verdict v JOIN team_member t ON t.id = v.member_id
  WHERE (v.payout_id = $1.payout_id OR v.batch_id = $1.batch_id
    OR v.settings_change_id = $1.settings_change_id
      OR v.transaction_id = $1.transaction_id)
    AND v.verdict = 'approved' AND v.digest = $1.digest AND counts_as_approver(t, service_now())
    AND t.id <> ALL ($1.makers) AND 0 <> ALL ($1.makers)
$$;
