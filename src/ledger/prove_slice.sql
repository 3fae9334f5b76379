-- Proves the next slice of a pass, about `most` rows of one table, and records the progress, in one short
-- snapshot. Entries and events after the proven point (`audit_point`) are left to `audit_recent`. Entries
-- before it never change: the pass sums them slice by slice, and the sums must equal the sums that were kept
-- when the entries were first proven (`audit_proven`).
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION prove_slice(pass int, most int) RETURNS TABLE (
  invariant text,
  merchant_id int,
  problem text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  stages CONSTANT text[] :=
    '{ledger_entry,event,position,transaction,payout,batch,payment_link,payout_count,balance_snapshot,done}';
  here audit_pass;
  point audit_point := (SELECT p FROM audit_point p);
  upto bigint;
  checked record;
  found int := 0;
BEGIN
  SELECT * INTO here FROM audit_pass p WHERE p.id = pass FOR UPDATE;
  IF here.stage = 'done' OR here.id IS NULL THEN RETURN; END IF;
  IF here.id_done = 0 AND here.merchant_id_done = 0 THEN
    -- Rows that are written later are proven by `audit_recent`.
    here.id_last := CASE here.stage WHEN 'event' THEN point.event_id WHEN 'transaction'
      THEN (SELECT max(id) FROM transaction)
      WHEN 'payout' THEN (SELECT max(id) FROM payout) WHEN 'batch' THEN (SELECT max(id) FROM batch)
      WHEN 'payment_link' THEN (SELECT max(id) FROM payment_link) WHEN 'payout_count' THEN 2147483647
      WHEN 'balance_snapshot' THEN (SELECT max(id) FROM balance_snapshot) END;
  END IF;
  IF here.stage = 'ledger_entry' THEN here.id_last := coalesce(point.ledger_entry_id, 0); END IF;

  IF here.stage = 'position' THEN
    SELECT * INTO checked FROM audit_positions(here.merchant_id_done, here.id_done, most);
    RETURN QUERY SELECT 'events_report_every_change', f.merchant_id, f.problem
      FROM unnest(checked.merchants, checked.problems) AS f (merchant_id, problem);
    GET DIAGNOSTICS found = ROW_COUNT;
    here.merchant_id_done := checked.to_merchant;
    here.id_done := checked.to_position;
    upto := checked.to_merchant;
  ELSIF here.id_done < here.id_last THEN
    upto := slice_end(here.stage, here.id_done, most);
    upto := least(coalesce(upto, here.id_last), here.id_last);
    RETURN QUERY SELECT * FROM audit_slice(here.stage, here.id_done, upto);
    GET DIAGNOSTICS found = ROW_COUNT;
    IF here.stage = 'ledger_entry' THEN
      INSERT INTO audit_pass_sum AS s (pass_id, merchant_id, available, reserved, receivable)
      SELECT here.id, m.merchant_id,
        sum(CASE 'available'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount
          ELSE 0 END),
        sum(CASE 'reserved'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount
          ELSE 0 END),
        sum(CASE 'suspense'::ledger_account WHEN m.debit THEN m.amount WHEN m.credit THEN -m.amount
          ELSE 0 END)
      FROM ledger_entry m WHERE m.id > here.id_done AND m.id <= upto GROUP BY m.merchant_id
      ON CONFLICT (pass_id, merchant_id) DO UPDATE SET available = s.available + excluded.available,
        reserved = s.reserved + excluded.reserved, receivable = s.receivable + excluded.receivable;
    END IF;
    here.id_done := upto;
    IF upto = here.id_last THEN upto := NULL; END IF;
  END IF;
  here.problems := here.problems + found;

  IF here.stage = 'ledger_entry' AND upto IS NULL THEN
    RETURN QUERY
    SELECT 'balances_equal_entries', merchant_id,
      format('its entries up to %s say %s, %s, %s, and said %s, %s, %s when they were proven', here.id_last,
      coalesce(s.available, 0), coalesce(s.reserved, 0), coalesce(s.receivable, 0),
      coalesce(p.available, 0), coalesce(p.reserved, 0), coalesce(p.receivable, 0))
    FROM (SELECT * FROM audit_pass_sum WHERE pass_id = here.id) s FULL JOIN audit_proven p USING (merchant_id)
    WHERE (coalesce(s.available, 0), coalesce(s.reserved, 0), coalesce(s.receivable, 0))
      <> (coalesce(p.available, 0), coalesce(p.reserved, 0), coalesce(p.receivable, 0));
    GET DIAGNOSTICS found = ROW_COUNT;
    here.problems := here.problems + found;
    DELETE FROM audit_pass_sum s WHERE s.pass_id = here.id;
  END IF;
  IF upto IS NULL THEN
    here.stage := stages[array_position(stages, here.stage) + 1];
    here.id_done := 0;
    here.merchant_id_done := 0;
  END IF;
  UPDATE audit_pass p SET stage = here.stage, id_done = here.id_done,
    merchant_id_done = here.merchant_id_done, id_last = coalesce(here.id_last, 0), slices = p.slices + 1,
    problems = here.problems, ended_at = CASE WHEN here.stage = 'done' THEN now() END
  WHERE p.id = here.id;
  IF here.stage = 'done' AND here.problems = 0 THEN UPDATE audit_point
    SET whole_proven_at = here.begun_at; END IF;
END $$;
