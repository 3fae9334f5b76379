-- Returns the entries that end a reservation of `reserved`: the paid amount goes to the operator's clearing
-- account, and the rest is withheld in `unallocated` until people decide (`decide_difference`): the operator
-- may have paid all of it. Where `paid` is null, all of the reservation becomes available. The planner
-- inlines this function into the calling statement.
CREATE OR REPLACE FUNCTION reservation_end(method provider, reserved bigint, paid bigint)
RETURNS TABLE (step ledger_step, account ledger_account, amount bigint)
LANGUAGE sql IMMUTABLE AS $$
  SELECT side.* FROM (VALUES
    ('post'::ledger_step, clearing_account(method), paid),
    ('withhold'::ledger_step, 'unallocated'::ledger_account, reserved - paid),
    ('void'::ledger_step, 'available'::ledger_account, CASE WHEN paid IS NULL THEN reserved END)
  ) AS side (step, account, amount)
  WHERE side.amount <> 0
$$;
