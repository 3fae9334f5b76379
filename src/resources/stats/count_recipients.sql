-- Records by how many recipients of batches, and by which amounts, each statement changed the figures of
-- dashboards. A recipient counts from its first request to the operator on, in the hour of that request.
CREATE OR REPLACE FUNCTION count_recipients() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO disbursement_change (merchant_id, hour, kind, payment_method, status, failure_reason,
    settle_class, n, amount, settled_amount)
  SELECT merchant_id, date_trunc('hour', sent_at, 'UTC'), 'recipient', payment_method,
    CASE WHEN reversed_at IS NOT NULL THEN 'reversed' ELSE status::text END::transaction_status,
    coalesce(failure_reason, ''),
    CASE WHEN status = 'success' AND reversed_at IS NULL THEN settle_class(sent_at, settled_at) ELSE 0 END,
    sum(n), sum(n * amount), coalesce(sum(n * settled_amount), 0)
  FROM (SELECT i.*, 1 AS n FROM inserted i UNION ALL SELECT d.*, -1 FROM deleted d) AS moved
  WHERE sent_at IS NOT NULL
  GROUP BY 1, 2, 4, 5, 6, 7
  HAVING sum(n) <> 0 OR sum(n * amount) <> 0 OR sum(n * settled_amount) <> 0;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER "recipient_counted" AFTER UPDATE
  ON "batch_recipient" REFERENCING NEW TABLE AS inserted OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION count_recipients();
