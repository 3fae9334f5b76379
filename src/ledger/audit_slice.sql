-- Proves a slice of a table: the rows with ids above `after`, up to `upto`.
CREATE OR REPLACE FUNCTION audit_slice(stage text, after bigint, upto bigint)
  RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
  CASE stage
    WHEN 'ledger_entry' THEN RETURN QUERY SELECT * FROM audit_ledger_entries(after, upto);
    WHEN 'event' THEN RETURN QUERY SELECT * FROM audit_events(after, upto);
    WHEN 'transaction' THEN RETURN QUERY SELECT * FROM audit_subjects(
      ARRAY(SELECT t.id FROM transaction t WHERE t.id > after AND t.id <= upto), '{}', '{}', '{}');
    WHEN 'payout' THEN RETURN QUERY SELECT * FROM audit_subjects(
      '{}', ARRAY(SELECT p.id FROM payout p WHERE p.id > after AND p.id <= upto), '{}', '{}');
    WHEN 'batch' THEN RETURN QUERY SELECT * FROM audit_subjects(
      '{}', '{}', ARRAY(SELECT b.id FROM batch b WHERE b.id > after AND b.id <= upto), '{}');
    WHEN 'payment_link' THEN RETURN QUERY SELECT * FROM audit_subjects(
      '{}', '{}', '{}', ARRAY(SELECT l.id FROM payment_link l WHERE l.id > after AND l.id <= upto));
    WHEN 'payout_count' THEN RETURN QUERY SELECT * FROM audit_payout_counts(after::int, upto::int);
    WHEN 'balance_snapshot' THEN RETURN QUERY SELECT * FROM audit_snapshots(
      ARRAY(SELECT s.id FROM balance_snapshot s WHERE s.id > after AND s.id <= upto));
  END CASE;
END $$;
