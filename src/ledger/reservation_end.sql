-- The movements that end a reservation over `reserved`: what was paid goes to the clearing account of the
-- operator and the rest is free again; where nothing was paid (`paid` is null) all of it is. The planner
-- makes it a part of the statement that asks.
CREATE OR REPLACE FUNCTION reservation_end(method provider, reserved bigint, paid bigint)
RETURNS TABLE (step ledger_step, account ledger_account, amount bigint)
LANGUAGE sql IMMUTABLE AS $$
  SELECT side.* FROM (VALUES
    ('post'::ledger_step, clearing_account(method), paid),
    ('release'::ledger_step, 'available'::ledger_account, reserved - paid),
    ('void'::ledger_step, 'available'::ledger_account, CASE WHEN paid IS NULL THEN reserved END)
  ) AS side (step, account, amount)
  WHERE side.amount <> 0
$$;

REVOKE EXECUTE ON FUNCTION reservation_end FROM PUBLIC;
