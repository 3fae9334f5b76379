-- Gives a member another role; the trigger `change_member` applies the consequences.
CREATE OR REPLACE FUNCTION change_member_role(member int, new_role member_role) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE team_member SET role = new_role WHERE id = member
$$;

REVOKE EXECUTE ON FUNCTION change_member_role FROM PUBLIC;
GRANT EXECUTE ON FUNCTION change_member_role TO payments_service;
