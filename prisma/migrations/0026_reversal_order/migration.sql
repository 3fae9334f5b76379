-- Written by hand: what the schema language cannot say.

-- What takes back locks in the order of what settles: subjects, their requests, balances. What it takes of a balance is dated
-- when it had it, not when it began to wait for it: lines of a statement are in the order in which their money moved.
-- Otherwise these are as before.

CREATE OR REPLACE FUNCTION reverse_many(transaction_ids bigint[], sources text[], evidences jsonb[])
RETURNS TABLE (place int, moved boolean, status transaction_status, shortfall bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  at timestamptz;
BEGIN
  PERFORM FROM transaction t WHERE t.id = ANY (transaction_ids) ORDER BY t.id FOR UPDATE;
  PERFORM FROM operator_request r WHERE r.transaction_id = ANY (transaction_ids) ORDER BY r.transaction_id FOR NO KEY UPDATE;
  PERFORM FROM merchant_balance b
  WHERE b.merchant_id IN (SELECT t.merchant_id FROM transaction t WHERE t.id = ANY (transaction_ids))
  ORDER BY b.merchant_id FOR UPDATE;
  at := service_now() + (clock_timestamp() - now());
  RETURN QUERY
  WITH item AS (
    SELECT i.*, i.ordinality::int AS place
    FROM unnest(transaction_ids, sources, evidences) WITH ORDINALITY AS i (id, source, evidence, ordinality)
  ), chosen AS (
    SELECT DISTINCT ON (i.id) i.* FROM item i ORDER BY i.id, i.place
  ), allowed AS (
    SELECT c.id, c.place, c.evidence, t.merchant_id, t.status AS was, t.settled_amount AS amount
    FROM chosen c
    JOIN transaction t ON t.id = ANY (transaction_ids) AND t.id = c.id AND t.transaction_type = 'pay'
    WHERE c.source = 'query' AND CASE t.status
      -- Refunds gave all of it back to the payer, and the operator takes it back as well: its own way, once.
      WHEN 'reversed' THEN NOT EXISTS (
        SELECT FROM movement m WHERE m.cause = 'transaction:' || t.id AND m.step IN ('reverse', 'shortfall'))
      ELSE EXISTS (
        SELECT FROM lifecycle_move m
        WHERE m.lifecycle = 'transaction' AND m.from_status = t.status::text AND m.to_status = 'reversed') END
  ), split AS (
    SELECT a.*, greatest(0, least(a.amount, b.available - coalesce(sum(a.amount) OVER (
      PARTITION BY a.merchant_id ORDER BY a.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)))::bigint AS taken
    FROM allowed a JOIN merchant_balance b USING (merchant_id)
  ), changed AS (
    UPDATE transaction t SET status = 'reversed', evidence_source = 'query'
    FROM split s WHERE t.id = ANY (transaction_ids) AND t.id = s.id
    RETURNING t.*, s.place, s.was, s.evidence, s.taken, s.amount - s.taken AS rest
  ), given_back AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'transaction:' || c.id, side.step, side.account, clearing_account(c.payment_method), side.amount, at
    FROM changed c CROSS JOIN LATERAL (VALUES
      ('reverse'::ledger_step, 'available'::ledger_account, c.taken),
      ('shortfall'::ledger_step, 'suspense'::ledger_account, c.rest)
    ) AS side (step, account, amount)
    WHERE side.amount > 0 ORDER BY c.merchant_id, c.id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id, 'payment_reversed', jsonb_strip_nulls(jsonb_build_object(
      'transaction_id', c.id, 'reference', c.reference, 'amount', c.settled_amount, 'currency', 'XOF',
      'payment_method', c.payment_method, 'customer_phone', c.customer_phone, 'status', c.status,
      'previous_status', c.was, 'late', c.late, 'shortfall', nullif(c.rest, 0))), at
    FROM changed c ORDER BY c.merchant_id, c.id
  ), answered AS (
    UPDATE operator_request r SET next_check_at = NULL, evidence = coalesce(c.evidence, r.evidence)
    FROM changed c
    WHERE r.merchant_id = c.merchant_id AND r.transaction_id = c.id AND r.kind = 'collect'
  )
  SELECT i.place, c.id IS NOT NULL AND c.place = i.place, coalesce(c.status, t.status), c.rest
  FROM item i
  JOIN transaction t ON t.id = ANY (transaction_ids) AND t.id = i.id
  LEFT JOIN changed c ON c.id = i.id
  ORDER BY i.place;
END $$;

CREATE OR REPLACE FUNCTION reverse_disbursements(causes text[], evidences jsonb[]) RETURNS TABLE (place int, moved boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  deposits bigint[] := ARRAY(SELECT transaction_of(c) FROM unnest(causes) AS c WHERE transaction_of(c) IS NOT NULL);
  payouts bigint[] := ARRAY(SELECT payout_of(c) FROM unnest(causes) AS c WHERE payout_of(c) IS NOT NULL);
  merchants int[];
BEGIN
  PERFORM FROM transaction t WHERE t.id = ANY (deposits) ORDER BY t.id FOR UPDATE;
  PERFORM FROM payout p WHERE p.id = ANY (payouts) ORDER BY p.id FOR UPDATE;
  PERFORM FROM operator_request r WHERE r.transaction_id = ANY (deposits) ORDER BY r.transaction_id FOR NO KEY UPDATE;
  PERFORM FROM operator_request r WHERE r.payout_id = ANY (payouts) ORDER BY r.payout_id FOR NO KEY UPDATE;
  merchants := ARRAY(
    SELECT t.merchant_id FROM transaction t WHERE t.id = ANY (deposits)
    UNION SELECT p.merchant_id FROM payout p WHERE p.id = ANY (payouts));
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchants) ORDER BY b.merchant_id FOR UPDATE;
  RETURN QUERY
  WITH item AS MATERIALIZED (
    SELECT i.*, transaction_of(i.cause) AS transaction_id, payout_of(i.cause) AS payout_id,
      row_number() OVER (PARTITION BY transaction_of(i.cause), payout_of(i.cause) ORDER BY i.place) = 1 AS first
    FROM unnest(causes, evidences) WITH ORDINALITY AS i (cause, evidence, place)
  ), deposit AS (
    UPDATE transaction t SET status = 'reversed', evidence_source = 'query'
    FROM item i
    WHERE t.id = ANY (deposits) AND t.id = i.transaction_id AND i.first AND t.transaction_type = 'deposit' AND t.status = 'success'
    RETURNING t.*, i.place, i.evidence
  ), given AS (
    UPDATE payout p SET reversed_at = at
    FROM item i
    WHERE p.id = ANY (payouts) AND p.id = i.payout_id AND i.first AND p.status = 'completed' AND p.reversed_at IS NULL
    RETURNING p.*, p AS self, i.place, i.evidence
  ), back AS MATERIALIZED (
    SELECT d.place, d.merchant_id, d.payment_method, d.settled_amount, 'transaction:' || d.id AS cause, 'deposit_reversed' AS type,
      jsonb_strip_nulls(jsonb_build_object(
        'transaction_id', d.id, 'reference', d.reference, 'amount', d.settled_amount, 'currency', 'XOF',
        'payment_method', d.payment_method, 'customer_phone', d.customer_phone, 'status', d.status,
        'previous_status', 'success', 'refund_of', d.refund_of_id)) AS data
    FROM deposit d
    UNION ALL
    SELECT g.place, g.merchant_id, g.payment_method, g.settled_amount, 'payout:' || g.id, 'payout_reversed',
      payout_told(g.self, g.status)
    FROM given g
  ), returned AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT b.merchant_id, b.cause, 'reverse', clearing_account(b.payment_method), 'available', b.settled_amount, at
    FROM back b ORDER BY b.merchant_id, b.place
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT b.merchant_id, b.type, b.data, at FROM back b ORDER BY b.merchant_id, b.place
  ), deposit_answered AS (
    UPDATE operator_request r SET next_check_at = NULL, evidence = coalesce(d.evidence, r.evidence)
    FROM deposit d WHERE r.merchant_id = d.merchant_id AND r.transaction_id = d.id AND r.kind = 'disburse'
  ), payout_answered AS (
    UPDATE operator_request r SET next_check_at = NULL, evidence = coalesce(g.evidence, r.evidence)
    FROM given g WHERE r.payout_id = ANY (payouts) AND r.payout_id = g.id
  )
  SELECT i.place::int, b.place IS NOT NULL FROM item i LEFT JOIN back b ON b.place = i.place ORDER BY i.place;
END $$;
