-- Keeps exact counts of payouts by merchant, method and status. Each transaction that writes payouts holds
-- the lock on the merchant's balance, so no other transaction changes the same counts at the same time. The
-- changes of the figures of dashboards are recorded beside them. The time to settle begins when a payout may
-- be sent.
CREATE OR REPLACE FUNCTION count_payouts() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO payout_count AS k (merchant_id, payment_method, status, n)
    SELECT merchant_id, payment_method, status, count(*) FROM inserted GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (merchant_id, payment_method, status) DO UPDATE SET n = k.n + excluded.n;
    INSERT INTO disbursement_change (merchant_id, hour, kind, payment_method, status, failure_reason,
      settle_class, n, amount, settled_amount)
    SELECT merchant_id, date_trunc('hour', created_at, 'UTC'), 'payout', payment_method,
      CASE WHEN reversed_at IS NOT NULL THEN 'reversed' WHEN status = 'completed' THEN 'success'
        ELSE status::text END::transaction_status, coalesce(failure_reason, ''),
      CASE WHEN status = 'completed' AND reversed_at IS NULL THEN settle_class(send_at, settled_at)
        ELSE 0 END,
      count(*), sum(amount), coalesce(sum(settled_amount), 0)
    FROM inserted GROUP BY 1, 2, 4, 5, 6, 7;
  ELSE
    INSERT INTO payout_count AS k (merchant_id, payment_method, status, n)
    SELECT merchant_id, payment_method, status, sum(n)
    FROM (
      SELECT merchant_id, payment_method, status, 1 AS n FROM inserted
      UNION ALL SELECT merchant_id, payment_method, status, -1 FROM deleted
    ) AS moved
    GROUP BY 1, 2, 3 HAVING sum(n) <> 0 ORDER BY 1, 2, 3
    ON CONFLICT (merchant_id, payment_method, status) DO UPDATE SET n = k.n + excluded.n;
    INSERT INTO disbursement_change (merchant_id, hour, kind, payment_method, status, failure_reason,
      settle_class, n, amount, settled_amount)
    SELECT merchant_id, date_trunc('hour', created_at, 'UTC'), 'payout', payment_method,
      CASE WHEN reversed_at IS NOT NULL THEN 'reversed' WHEN status = 'completed' THEN 'success'
        ELSE status::text END::transaction_status, coalesce(failure_reason, ''),
      CASE WHEN status = 'completed' AND reversed_at IS NULL THEN settle_class(send_at, settled_at)
        ELSE 0 END,
      sum(n), sum(n * amount), coalesce(sum(n * settled_amount), 0)
    FROM (SELECT i.*, 1 AS n FROM inserted i UNION ALL SELECT d.*, -1 FROM deleted d) AS moved
    GROUP BY 1, 2, 4, 5, 6, 7
    HAVING sum(n) <> 0 OR sum(n * amount) <> 0 OR sum(n * settled_amount) <> 0;
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER "payout_inserted" AFTER INSERT ON "payout" REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION count_payouts();

CREATE OR REPLACE TRIGGER "payout_updated" AFTER UPDATE
  ON "payout" REFERENCING NEW TABLE AS inserted OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION count_payouts();
