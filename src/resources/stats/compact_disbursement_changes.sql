-- Adds up to `take` changes of payouts and recipients to the figures of dashboards. Only one caller at a time
-- does this; the others return 0 at once. Rows of zeros remain: a later change fills them again.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION compact_disbursement_changes(take int) RETURNS int LANGUAGE plpgsql
  SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  compacted int;
BEGIN
  -- The lock of `compact_transaction_counts`: both write figures.
  IF NOT pg_try_advisory_xact_lock(72707374) THEN RETURN 0; END IF;
  WITH taken AS (
    DELETE FROM disbursement_change c
    WHERE c.ctid = ANY (ARRAY(SELECT ctid FROM disbursement_change ORDER BY merchant_id, id LIMIT take))
    RETURNING c.*
  ), figures AS (
    INSERT INTO payment_figure AS k (merchant_id, hours, start, kind, payment_method, status, failure_reason,
      n, amount, settled_amount)
    SELECT merchant_id, hours, date_bin(hours * interval '1 hour', hour, '2000-01-01 UTC'), kind,
      payment_method, status, failure_reason, sum(n), sum(amount), sum(settled_amount)
    FROM taken CROSS JOIN (VALUES (1), (24)) AS s (hours)
    GROUP BY 1, 2, 3, 4, 5, 6, 7 HAVING sum(n) <> 0 OR sum(amount) <> 0 OR sum(settled_amount) <> 0
    ORDER BY 1, 2, 3
    ON CONFLICT (merchant_id, hours, start, kind, payment_method, status, failure_reason) DO UPDATE
      SET n = k.n + excluded.n, amount = k.amount + excluded.amount,
        settled_amount = k.settled_amount + excluded.settled_amount
  ), times AS (
    INSERT INTO settle_time AS k (merchant_id, hours, start, kind, payment_method, settle_class, n)
    SELECT merchant_id, hours, date_bin(hours * interval '1 hour', hour, '2000-01-01 UTC'), kind,
      payment_method, settle_class, sum(n)
    FROM taken CROSS JOIN (VALUES (1), (24)) AS s (hours)
    WHERE settle_class > 0
    GROUP BY 1, 2, 3, 4, 5, 6 HAVING sum(n) <> 0 ORDER BY 1, 2, 3
    ON CONFLICT (merchant_id, hours, start, kind, payment_method, settle_class) DO UPDATE
      SET n = k.n + excluded.n
  )
  SELECT count(*) INTO compacted FROM taken;
  RETURN compacted;
END $$;
