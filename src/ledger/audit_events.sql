-- Proves the events with ids above `after`, up to `upto`: each event of a payment or batch names it, and it
-- exists. The content of the events is proven with the payments and batches (`audit_subjects`).
CREATE OR REPLACE FUNCTION audit_events(after bigint, upto bigint)
  RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  changes text[] := ARRAY(
    SELECT event_of('pending') UNION SELECT event_of(m.to_status) FROM lifecycle_move m
      WHERE m.lifecycle = 'transaction');
BEGIN
  RETURN QUERY
  SELECT 'events_report_every_change', e.merchant_id, format('event:%s (%s) names no payment or batch',
    e.id, e.type)
  FROM event e CROSS JOIN LATERAL (SELECT event_origin(e.data) AS origin OFFSET 0) c
  WHERE e.id > after AND e.id <= upto
    AND (e.type = ANY (changes) OR e.type LIKE 'deposit\_%' OR e.type LIKE 'payout\_%'
      OR e.type LIKE 'batch\_%'
      OR e.type IN ('bulk_pay_done', 'recipient_reversed', 'payment_link_used'))
    AND coalesce(transaction_of(c.origin), payout_of(c.origin), batch_of(c.origin)) IS NULL;

  RETURN QUERY SELECT s.* FROM (
    SELECT array_agg(DISTINCT transaction_of(c.origin)) AS transactions,
      array_agg(DISTINCT payout_of(c.origin)) AS payouts, array_agg(DISTINCT batch_of(c.origin)) AS batches
    FROM (SELECT event_origin(e.data) AS origin FROM event e WHERE e.id > after AND e.id <= upto OFFSET 0) c
    WHERE NOT EXISTS (SELECT FROM transaction t WHERE t.id = transaction_of(c.origin))
      AND NOT EXISTS (SELECT FROM payout p WHERE p.id = payout_of(c.origin))
      AND NOT EXISTS (SELECT FROM batch b WHERE b.id = batch_of(c.origin))
  ) missing CROSS JOIN LATERAL audit_subjects(
    coalesce(array_remove(missing.transactions, NULL), '{}'),
    coalesce(array_remove(missing.payouts, NULL), '{}'), coalesce(array_remove(missing.batches, NULL), '{}'),
      '{}') s;
END $$;
