-- Written by hand. A call that a node of the previous release had under way when 0050_operator_identities was applied drew one
-- identity for the row and another one for its request. The proof takes that for a fault and halts payments out, so each such row
-- gets the identity that its operator was asked under.

DO $$
DECLARE
  begun timestamptz := clock_timestamp();
  first_id bigint;
BEGIN
  -- Such calls may still be under way: a statement of the service takes 5 s at most. Nothing is locked meanwhile.
  WHILE clock_timestamp() < begun + interval '6 seconds' AND EXISTS (
    SELECT FROM pg_stat_activity a
    WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.state = 'active' AND a.query_start < begun
  ) LOOP
    PERFORM pg_sleep(0.05);
    PERFORM pg_stat_clear_snapshot();
  END LOOP;
  -- Bound: the newest million requests. Those calls ended seconds ago.
  first_id := (SELECT coalesce(max(r.id), 0) - 1000000 FROM operator_request r);
  CREATE TEMPORARY TABLE other_identity ON COMMIT DROP AS
  SELECT r.transaction_id, r.payout_id, r.recipient_id, r.correlation_id
  FROM operator_request r
  LEFT JOIN transaction t ON t.id = r.transaction_id
  LEFT JOIN payout p ON p.id = r.payout_id
  LEFT JOIN batch_recipient b ON b.id = r.recipient_id
  WHERE r.id > first_id AND r.correlation_id <> coalesce(t.correlation_id, p.correlation_id, b.correlation_id);
  IF NOT EXISTS (SELECT FROM other_identity) THEN RETURN; END IF;
  ALTER TABLE "transaction" DISABLE TRIGGER "transaction_identity";
  ALTER TABLE "payout" DISABLE TRIGGER "payout_identity";
  ALTER TABLE "batch_recipient" DISABLE TRIGGER "batch_recipient_identity";
  UPDATE transaction t SET correlation_id = o.correlation_id FROM other_identity o WHERE t.id = o.transaction_id;
  UPDATE payout p SET correlation_id = o.correlation_id FROM other_identity o WHERE p.id = o.payout_id;
  UPDATE batch_recipient b SET correlation_id = o.correlation_id FROM other_identity o WHERE b.id = o.recipient_id;
  ALTER TABLE "transaction" ENABLE TRIGGER "transaction_identity";
  ALTER TABLE "payout" ENABLE TRIGGER "payout_identity";
  ALTER TABLE "batch_recipient" ENABLE TRIGGER "batch_recipient_identity";
END $$;
