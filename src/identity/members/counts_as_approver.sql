-- Whether an approval by a member counts at the given moment: the member is active, has a role that approves,
-- and has been an approver for at least 24 hours.
CREATE OR REPLACE FUNCTION counts_as_approver(team_member, at timestamptz) RETURNS boolean
  LANGUAGE sql STABLE AS $$
  SELECT $1.status = 'active' AND role_approves($1.role)
    AND coalesce($1.approver_since <= at - interval '24 hours', false)
$$;
