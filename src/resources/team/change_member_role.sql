-- Gives a member another role; the trigger `change_member` applies the consequences.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION change_member_role(member int, new_role member_role) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE team_member SET role = new_role WHERE id = member
$$;
