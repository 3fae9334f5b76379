-- Proves the rows that were written after the proven point (`audit_point`), up to these ids (null: to the
-- end, with every balance), and the payments, batches and links of these rows, each with all its rows.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION audit_recent(upto_entry bigint, upto_event bigint)
RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  forever CONSTANT bigint := 9223372036854775807;
  -- If a link has more payments than this, the daily proof counts them, and not the proof of each minute.
  link_uses_max CONSTANT int := 50000;
  since audit_point := (SELECT p FROM audit_point p);
  origins text[] := ARRAY(
    SELECT event_origin(e.data) FROM event e WHERE e.id > coalesce(since.event_id, 0)
      AND e.id <= coalesce(upto_event, forever)
    UNION SELECT m.origin FROM ledger_entry m
    WHERE m.id > coalesce(since.ledger_entry_id, 0) AND m.id <= coalesce(upto_entry, forever));
  transactions bigint[] := ARRAY(
    SELECT transaction_of(c) FROM unnest(origins) AS c WHERE c LIKE 'transaction:%'
      AND transaction_of(c) IS NOT NULL);
BEGIN
  -- Each refund is proven together with its collection.
  transactions := transactions || ARRAY(
    SELECT DISTINCT t.refund_of_id FROM transaction t WHERE t.id = ANY (transactions)
      AND t.refund_of_id IS NOT NULL);
  RETURN QUERY SELECT * FROM audit_ledger_entries(coalesce(since.ledger_entry_id, 0),
    coalesce(upto_entry, forever));
  RETURN QUERY SELECT * FROM audit_events(coalesce(since.event_id, 0), coalesce(upto_event, forever));
  RETURN QUERY SELECT * FROM audit_subjects(
    transactions,
    ARRAY(SELECT payout_of(c) FROM unnest(origins) AS c WHERE c LIKE 'payout:%' AND payout_of(c) IS NOT NULL),
    ARRAY(
      SELECT batch_of(c) FROM unnest(origins) AS c WHERE c LIKE 'batch:%' AND batch_of(c) IS NOT NULL
      UNION SELECT r.batch_id FROM batch_recipient r
      WHERE r.id = ANY (ARRAY(SELECT recipient_of(c) FROM unnest(origins) AS c WHERE c LIKE 'recipient:%'))),
    ARRAY(
      SELECT l.id FROM payment_link l WHERE l.usage_count <= link_uses_max AND (
        l.id IN (SELECT t.payment_link_id FROM transaction t WHERE t.id = ANY (transactions))
        OR l.id = ANY (ARRAY(
          SELECT (e.data->>'payment_link_id')::int FROM event e
          WHERE e.type = 'payment_link_used' AND e.id > coalesce(since.event_id, 0)
            AND e.id <= coalesce(upto_event, forever))))));
  -- Older snapshots cannot have changed: an entry changes only snapshots of later moments.
  RETURN QUERY SELECT * FROM audit_snapshots(ARRAY(
    SELECT s.id FROM (
      SELECT m.merchant_id, min(m.created_at) AS first FROM ledger_entry m
      WHERE m.id > coalesce(since.ledger_entry_id, 0) AND m.id <= coalesce(upto_entry, forever)
      GROUP BY m.merchant_id) AS m
    JOIN balance_snapshot s ON s.merchant_id = m.merchant_id AND s.at >= m.first));
  IF upto_entry IS NULL THEN RETURN QUERY SELECT * FROM audit_balances(false); END IF;
END $$;
