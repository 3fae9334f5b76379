-- Records by how many transactions, and by which amounts, each statement changed the count of each type,
-- operator, status, reason of failure, class of the time to settle, link, hour of creation and bucket of
-- 1,024 ids; `compact_transaction_counts` adds these changes to the counts.
CREATE OR REPLACE FUNCTION count_transactions() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO transaction_count_change (merchant_id, bucket, transaction_type, payment_method, status, hour,
      failure_reason, settle_class, payment_link_id, n, amount, settled_amount)
    SELECT merchant_id, id / 1024, transaction_type, payment_method, status,
      date_trunc('hour', created_at, 'UTC'), coalesce(failure_reason, ''),
      CASE status WHEN 'success' THEN settle_class(created_at, settled_at) ELSE 0 END, payment_link_id,
      count(*), sum(amount), coalesce(sum(settled_amount), 0)
    FROM inserted GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9 ORDER BY 2;
  ELSIF TG_OP = 'UPDATE' THEN
    INSERT INTO transaction_count_change (merchant_id, bucket, transaction_type, payment_method, status, hour,
      failure_reason, settle_class, payment_link_id, n, amount, settled_amount)
    SELECT merchant_id, id / 1024, transaction_type, payment_method, status,
      date_trunc('hour', created_at, 'UTC'), coalesce(failure_reason, ''),
      CASE status WHEN 'success' THEN settle_class(created_at, settled_at) ELSE 0 END, payment_link_id,
      sum(n), sum(n * amount), coalesce(sum(n * settled_amount), 0)
    FROM (SELECT i.*, 1 AS n FROM inserted i UNION ALL SELECT d.*, -1 FROM deleted d) AS moved
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
    HAVING sum(n) <> 0 OR sum(n * amount) <> 0 OR sum(n * settled_amount) <> 0 ORDER BY 2;
  ELSE
    INSERT INTO transaction_count_change (merchant_id, bucket, transaction_type, payment_method, status, hour,
      failure_reason, settle_class, payment_link_id, n, amount, settled_amount)
    SELECT merchant_id, id / 1024, transaction_type, payment_method, status,
      date_trunc('hour', created_at, 'UTC'), coalesce(failure_reason, ''),
      CASE status WHEN 'success' THEN settle_class(created_at, settled_at) ELSE 0 END, payment_link_id,
      -count(*), -sum(amount), -coalesce(sum(settled_amount), 0)
    FROM deleted GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9 ORDER BY 2;
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER "transaction_deleted" AFTER DELETE ON "transaction" REFERENCING OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION count_transactions();

CREATE OR REPLACE TRIGGER "transaction_inserted" AFTER INSERT
  ON "transaction" REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION count_transactions();

CREATE OR REPLACE TRIGGER "transaction_updated" AFTER UPDATE
  ON "transaction" REFERENCING NEW TABLE AS inserted OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION count_transactions();
