-- Keeps exact counts of payouts by merchant, method and status. Each transaction that writes payouts holds
-- the lock on the merchant's balance, so no other transaction changes the same counts at the same time.
CREATE OR REPLACE FUNCTION count_payouts() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO payout_count AS k (merchant_id, payment_method, status, n)
    SELECT merchant_id, payment_method, status, count(*) FROM inserted GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (merchant_id, payment_method, status) DO UPDATE SET n = k.n + excluded.n;
  ELSE
    INSERT INTO payout_count AS k (merchant_id, payment_method, status, n)
    SELECT merchant_id, payment_method, status, sum(n)
    FROM (
      SELECT merchant_id, payment_method, status, 1 AS n FROM inserted
      UNION ALL SELECT merchant_id, payment_method, status, -1 FROM deleted
    ) AS moved
    GROUP BY 1, 2, 3 HAVING sum(n) <> 0 ORDER BY 1, 2, 3
    ON CONFLICT (merchant_id, payment_method, status) DO UPDATE SET n = k.n + excluded.n;
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER "payout_inserted" AFTER INSERT ON "payout" REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION count_payouts();

CREATE OR REPLACE TRIGGER "payout_updated" AFTER UPDATE
  ON "payout" REFERENCING NEW TABLE AS inserted OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION count_payouts();
