-- Whether members of a role may approve payments and changes; `roles.ts` says the same, and a test compares
-- the two.
CREATE OR REPLACE FUNCTION role_approves(role member_role) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT role IN ('owner', 'admin', 'finance')
$$;
