-- Row-level security is forced: it holds the owner of the tables too. The owner is the role `payments_owner`, which all
-- migrations and all SECURITY DEFINER functions run as, and a policy shows it every row. The login account owns nothing and
-- inherits nothing: before it asks for a role it sees no row. (`migrate` makes the role and gives it what the account owned.)

-- Puts the wall around a table. Every table that carries a merchant has it: a migration that makes one calls this, and
-- grants to `payments_merchant` what its requests read there. A migration that changes rows needs nothing more: it runs as
-- `payments_owner`. By hand: SET ROLE payments_owner first.
CREATE OR REPLACE FUNCTION wall_in(walled regclass, merchant_column name DEFAULT 'merchant_id') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', walled);
  EXECUTE format('CREATE POLICY "every_row" ON %s TO payments_owner USING (true)', walled);
  EXECUTE format('CREATE POLICY "every_merchant" ON %s TO payments_service USING (true)', walled);
  -- Read once per statement, so that it is an index's condition like any other.
  EXECUTE format(
    'CREATE POLICY "own_merchant" ON %s TO payments_merchant USING (%I = (SELECT nullif(current_setting(''app.merchant'', true), '''')::int))',
    walled, merchant_column);
END $$;

-- A table that `migrate` gave to the role is forced already: a database that nodes work on is not locked here.
DO $$
DECLARE
  walled regclass;
BEGIN
  FOR walled IN
    SELECT c.oid FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND c.relrowsecurity AND NOT c.relforcerowsecurity
    ORDER BY c.oid
  LOOP
    EXECUTE format('DROP POLICY IF EXISTS "every_row" ON %s', walled);
    EXECUTE format('CREATE POLICY "every_row" ON %s TO payments_owner USING (true)', walled);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', walled);
  END LOOP;
END $$;
