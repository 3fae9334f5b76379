-- Takes back the credit of collections that their operator reversed. Its locks have the same order as those
-- of the functions that settle: transactions, requests, balances. Its ledger entries have the time at which
-- it got the locks on the balances, not the time at which it began to wait: so the lines of a statement are
-- in the order in which the money moved.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION reverse_many(transaction_ids bigint[], sources text[], evidences jsonb[])
RETURNS TABLE (ordinal int, moved boolean, status transaction_status, shortfall bigint, amount bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  at timestamptz;
BEGIN
  PERFORM FROM transaction t WHERE t.id = ANY (transaction_ids) ORDER BY t.id FOR UPDATE;
  PERFORM FROM operator_request r WHERE r.transaction_id = ANY (transaction_ids) ORDER BY r.transaction_id
    FOR NO KEY UPDATE;
  PERFORM FROM merchant_balance b
  WHERE b.merchant_id = ANY (ARRAY(
    SELECT t.merchant_id FROM transaction t WHERE t.id = ANY (transaction_ids)))
  ORDER BY b.merchant_id FOR UPDATE;
  at := service_now() + (clock_timestamp() - now());
  RETURN QUERY
  WITH item AS (
    SELECT i.*, i.ordinality::int AS ordinal
    FROM unnest(transaction_ids, sources, evidences) WITH ORDINALITY AS i (id, source, evidence, ordinality)
  ), chosen AS (
    SELECT DISTINCT ON (i.id) i.* FROM item i ORDER BY i.id, i.ordinal
  ), allowed AS (
    SELECT c.id, c.ordinal, c.evidence, t.merchant_id, t.status AS was, x.id AS exception_id,
      -- An excess that a person credited to the merchant is taken back too.
      t.settled_amount + CASE x.state WHEN 'credited' THEN x.confirmed_amount - x.requested_amount
        ELSE 0 END AS amount,
      CASE x.state WHEN 'open' THEN x.confirmed_amount - x.requested_amount ELSE 0 END AS unallocated
    FROM chosen c
    JOIN transaction t ON t.id = ANY (transaction_ids) AND t.id = c.id AND t.transaction_type = 'pay'
    LEFT JOIN settlement_exception x ON x.merchant_id = t.merchant_id AND x.transaction_id = t.id
    WHERE c.source = 'query' AND CASE t.status
      -- The operator may also reverse a collection that refunds have made `reversed`: book this only once.
      WHEN 'reversed' THEN NOT EXISTS (
        SELECT FROM ledger_entry m WHERE m.origin = 'transaction:' || t.id
          AND m.step IN ('reverse', 'shortfall'))
      ELSE EXISTS (
        SELECT FROM lifecycle_move m
        WHERE m.lifecycle = 'transaction' AND m.from_status = t.status::text AND m.to_status = 'reversed') END
  ), split AS (
    SELECT a.*, greatest(0, least(a.amount, b.available - coalesce(sum(a.amount) OVER (
      PARTITION BY a.merchant_id ORDER BY a.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
        0)))::bigint AS taken
    FROM allowed a JOIN merchant_balance b USING (merchant_id)
  ), changed AS (
    UPDATE transaction t SET status = 'reversed', evidence_source = 'query'
    FROM split s WHERE t.id = ANY (transaction_ids) AND t.id = s.id
    RETURNING t.*, s.ordinal, s.was, s.evidence, s.taken, s.amount - s.taken AS remaining, s.unallocated,
      s.exception_id
  ), given_back AS (
    INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'transaction:' || c.id, side.step, side.account,
      clearing_account(c.payment_method), side.amount, at
    FROM changed c CROSS JOIN LATERAL (VALUES
      ('reverse'::ledger_step, 'available'::ledger_account, c.taken),
      ('shortfall'::ledger_step, 'suspense'::ledger_account, c.remaining),
      ('excess_return'::ledger_step, 'unallocated'::ledger_account, c.unallocated)
    ) AS side (step, account, amount)
    WHERE side.amount > 0 ORDER BY c.merchant_id, c.id, side.step
  ), closed AS (
    UPDATE settlement_exception x
    SET state = 'returned', decided_by = 'operator', reason = 'The operator took the payment back.',
      decided_at = at
    FROM changed c WHERE x.id = c.exception_id AND x.state = 'open'
  ), events AS MATERIALIZED (
    SELECT append_events(array_agg((c.merchant_id, 'payment_reversed', jsonb_strip_nulls(jsonb_build_object(
      'transaction_id', c.id, 'reference', c.reference, 'amount', c.taken + c.remaining, 'currency', 'XOF',
      'payment_method', c.payment_method, 'customer_phone', c.customer_phone, 'status', c.status,
      'previous_status', c.was, 'late', c.late, 'shortfall', nullif(c.remaining, 0))))::new_event
      ORDER BY c.id), at)
    FROM changed c
  ), answered AS (
    UPDATE operator_request r SET next_check_at = NULL, evidence = coalesce(c.evidence, r.evidence)
    FROM changed c
    WHERE r.transaction_id = ANY (transaction_ids) AND r.transaction_id = c.id AND r.kind = 'collect'
  )
  SELECT i.ordinal, c.id IS NOT NULL AND c.ordinal = i.ordinal, coalesce(c.status, t.status), c.remaining,
    c.taken + c.remaining + c.unallocated
  FROM item i
  JOIN transaction t ON t.id = ANY (transaction_ids) AND t.id = i.id
  LEFT JOIN changed c ON c.id = i.id
  CROSS JOIN events
  ORDER BY i.ordinal;
END $$;
