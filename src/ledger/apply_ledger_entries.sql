-- Applies the new entries of each statement to the balances: one update per merchant, with the balance rows
-- locked in the order of the merchants' ids. A merchant that owes money and has money available then pays the
-- debt from it (`recover`).
CREATE OR REPLACE FUNCTION apply_ledger_entries() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
DECLARE
  merchants int[] := ARRAY(
    SELECT b.merchant_id FROM merchant_balance b
    WHERE b.merchant_id = ANY (ARRAY(SELECT i.merchant_id FROM inserted i)) ORDER BY b.merchant_id
      FOR UPDATE);
  missed boolean;
  owing int[];
BEGIN
  WITH changed AS (
    UPDATE merchant_balance b
    SET available = b.available + change.available, reserved = b.reserved + change.reserved,
      receivable = b.receivable + change.receivable
    FROM (
      SELECT merchant_id,
        sum(CASE 'available'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount
          ELSE 0 END) AS available,
        sum(CASE 'reserved'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount
          ELSE 0 END) AS reserved,
        sum(CASE 'suspense'::ledger_account WHEN debit THEN amount WHEN credit THEN -amount
          ELSE 0 END) AS receivable
      FROM inserted GROUP BY merchant_id
    ) change
    WHERE b.merchant_id = change.merchant_id AND b.merchant_id = ANY (merchants)
    RETURNING b.merchant_id, b.available > 0 AND b.receivable > 0 AS pays
  )
  SELECT array_agg(merchant_id) FILTER (WHERE pays),
    EXISTS (SELECT FROM inserted i WHERE i.merchant_id <> ALL (merchants))
    INTO owing, missed FROM changed;
  IF missed THEN
    RAISE EXCEPTION 'a merchant without a balance row' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF owing IS NOT NULL THEN
    INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
    SELECT merchant_id, 'receivable:' || gen_random_uuid(), 'recover', 'available', 'suspense',
      least(available, receivable), service_now()
    FROM merchant_balance WHERE merchant_id = ANY (owing) ORDER BY merchant_id;
  END IF;
  RETURN NULL;
END $$;

REVOKE EXECUTE ON FUNCTION apply_ledger_entries FROM PUBLIC;

CREATE OR REPLACE TRIGGER "ledger_entry_applied" AFTER INSERT
  ON "ledger_entry" REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION apply_ledger_entries();
