-- Applies the new entries of each statement to the balances: one update per merchant, with the balance rows
-- locked in the order of the merchants' ids. A merchant that owes money and has money available then pays the
-- debt from it (`recover`). The same locks keep the snapshots of past balances exact in every order of
-- commits: an entry that is dated before a snapshot changes that snapshot. After every 256 entries the
-- merchant gets a new snapshot, of the moment of its newest entry (see docs/design/ledger.md#past-balances).
CREATE OR REPLACE FUNCTION apply_ledger_entries() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
DECLARE
  merchants int[] := ARRAY(
    SELECT b.merchant_id FROM merchant_balance b
    WHERE b.merchant_id = ANY (ARRAY(SELECT i.merchant_id FROM inserted i)) ORDER BY b.merchant_id
      FOR UPDATE);
  missed boolean;
  owing int[];
  late int[];
  due int[];
BEGIN
  WITH changed AS (
    UPDATE merchant_balance b
    SET available = b.available + change.available, reserved = b.reserved + change.reserved,
      receivable = b.receivable + change.receivable,
      entries_since = CASE WHEN b.entries_since + change.n < 256 THEN b.entries_since + change.n ELSE 0 END,
      snapshot_at = CASE WHEN b.entries_since + change.n < 256 THEN b.snapshot_at
        ELSE greatest(b.snapshot_at, change.last) END
    FROM (
      SELECT merchant_id, count(*) AS n, min(created_at) AS first, max(created_at) AS last,
        sum(CASE 'available'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount
          ELSE 0 END) AS available,
        sum(CASE 'reserved'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount
          ELSE 0 END) AS reserved,
        sum(CASE 'suspense'::ledger_account WHEN debit THEN amount WHEN credit THEN -amount
          ELSE 0 END) AS receivable
      FROM inserted GROUP BY merchant_id
    ) change
    WHERE b.merchant_id = change.merchant_id AND b.merchant_id = ANY (merchants)
    RETURNING b.merchant_id, b.available > 0 AND b.receivable > 0 AS pays,
      change.first < b.snapshot_at AS is_late, b.entries_since = 0 AS is_due
  )
  SELECT array_agg(merchant_id) FILTER (WHERE pays), array_agg(merchant_id) FILTER (WHERE is_late),
    array_agg(merchant_id) FILTER (WHERE is_due),
    EXISTS (SELECT FROM inserted i WHERE i.merchant_id <> ALL (merchants))
    INTO owing, late, due, missed FROM changed;
  IF missed THEN
    RAISE EXCEPTION 'a merchant without a balance row' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF late IS NOT NULL THEN
    UPDATE balance_snapshot s
    SET available = s.available + change.available, reserved = s.reserved + change.reserved,
      receivable = s.receivable + change.receivable, total_in = s.total_in + change.total_in,
      total_out = s.total_out + change.total_out
    FROM (
      SELECT id, sum(available) AS available, sum(reserved) AS reserved, sum(receivable) AS receivable,
        sum(greatest(available + reserved, 0)) AS total_in,
        sum(greatest(-(available + reserved), 0)) AS total_out
      FROM (
        SELECT l.id,
          CASE 'available'::ledger_account WHEN i.credit THEN i.amount WHEN i.debit THEN -i.amount
            ELSE 0 END AS available,
          CASE 'reserved'::ledger_account WHEN i.credit THEN i.amount WHEN i.debit THEN -i.amount
            ELSE 0 END AS reserved,
          CASE 'suspense'::ledger_account WHEN i.debit THEN i.amount WHEN i.credit THEN -i.amount
            ELSE 0 END AS receivable
        FROM inserted i JOIN balance_snapshot l ON l.merchant_id = i.merchant_id AND l.at > i.created_at
        WHERE i.merchant_id = ANY (late)
      ) AS entry GROUP BY id
    ) AS change WHERE s.id = change.id;
  END IF;
  IF due IS NOT NULL THEN
    INSERT INTO balance_snapshot (merchant_id, at, available, reserved, receivable, total_in, total_out)
    SELECT i.merchant_id, i.last, b.*
    FROM (SELECT merchant_id, max(created_at) AS last FROM inserted WHERE merchant_id = ANY (due)
      GROUP BY merchant_id ORDER BY merchant_id) AS i, balance_before(i.merchant_id, i.last) AS b
    ON CONFLICT (merchant_id, at) DO NOTHING;
  END IF;
  IF owing IS NOT NULL THEN
    INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
    SELECT merchant_id, 'receivable:' || gen_random_uuid(), 'recover', 'available', 'suspense',
      least(available, receivable), service_now()
    FROM merchant_balance WHERE merchant_id = ANY (owing) ORDER BY merchant_id;
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER "ledger_entry_applied" AFTER INSERT
  ON "ledger_entry" REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION apply_ledger_entries();
