-- Reverses disbursements, each once, after the operator confirmed it: the paid amount is available again,
-- with a rest that people found to be paid (`decide_difference`); a rest that is still withheld stays with
-- them. A deposit becomes `reversed`; a payout stays `completed`, a recipient `success`, with `reversed_at`.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION reverse_disbursements(origins text[], evidences jsonb[])
  RETURNS TABLE (ordinal int, moved boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
  SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  deposits bigint[] := ARRAY(SELECT transaction_of(c) FROM unnest(origins) AS c
    WHERE transaction_of(c) IS NOT NULL);
  payouts bigint[] := ARRAY(SELECT payout_of(c) FROM unnest(origins) AS c WHERE payout_of(c) IS NOT NULL);
  recipients bigint[] := ARRAY(SELECT recipient_of(c) FROM unnest(origins) AS c
    WHERE recipient_of(c) IS NOT NULL);
  batches int[] := ARRAY(SELECT DISTINCT r.batch_id FROM batch_recipient r WHERE r.id = ANY (recipients));
  merchants int[];
BEGIN
  PERFORM FROM transaction t WHERE t.id = ANY (deposits) ORDER BY t.id FOR UPDATE;
  PERFORM FROM payout p WHERE p.id = ANY (payouts) ORDER BY p.id FOR UPDATE;
  PERFORM FROM batch b WHERE b.id = ANY (batches) ORDER BY b.id FOR UPDATE;
  PERFORM FROM batch_recipient r WHERE r.id = ANY (recipients) ORDER BY r.id FOR UPDATE;
  PERFORM FROM operator_request r WHERE r.transaction_id = ANY (deposits) ORDER BY r.transaction_id
    FOR NO KEY UPDATE;
  PERFORM FROM operator_request r WHERE r.payout_id = ANY (payouts) ORDER BY r.payout_id FOR NO KEY UPDATE;
  PERFORM FROM operator_request r WHERE r.recipient_id = ANY (recipients) ORDER BY r.recipient_id
    FOR NO KEY UPDATE;
  merchants := ARRAY(
    SELECT t.merchant_id FROM transaction t WHERE t.id = ANY (deposits)
    UNION SELECT p.merchant_id FROM payout p WHERE p.id = ANY (payouts)
    UNION SELECT b.merchant_id FROM batch b WHERE b.id = ANY (batches));
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchants) ORDER BY b.merchant_id FOR UPDATE;
  RETURN QUERY
  WITH item AS MATERIALIZED (
    SELECT i.*, transaction_of(i.origin) AS transaction_id, payout_of(i.origin) AS payout_id,
      recipient_of(i.origin) AS recipient_id, row_number() OVER (
        PARTITION BY transaction_of(i.origin), payout_of(i.origin), recipient_of(i.origin)
          ORDER BY i.ordinal) = 1 AS first
    FROM unnest(origins, evidences) WITH ORDINALITY AS i (origin, evidence, ordinal)
  ), deposit AS (
    UPDATE transaction t SET status = 'reversed', evidence_source = 'query'
    FROM item i
    WHERE t.id = ANY (deposits) AND t.id = i.transaction_id AND i.first AND t.transaction_type = 'deposit'
      AND t.status = 'success'
    RETURNING t.*, i.ordinal, i.evidence
  ), given AS (
    UPDATE payout p SET reversed_at = at
    FROM item i
    WHERE p.id = ANY (payouts) AND p.id = i.payout_id AND i.first AND p.status = 'completed'
      AND p.reversed_at IS NULL
    RETURNING p.*, p AS self, i.ordinal, i.evidence
  ), refunded AS (
    UPDATE batch_recipient r SET reversed_at = at
    FROM item i
    WHERE r.id = ANY (recipients) AND r.id = i.recipient_id AND i.first AND r.status = 'success'
      AND r.reversed_at IS NULL
    RETURNING r.*, i.ordinal, i.evidence
  ), back AS MATERIALIZED (
    SELECT d.ordinal, d.merchant_id, d.payment_method, 'transaction:' || d.id AS origin,
      d.settled_amount + coalesce((
        SELECT x.requested_amount - x.confirmed_amount FROM settlement_exception x
        WHERE x.merchant_id = d.merchant_id AND x.transaction_id = d.id AND x.state = 'paid'), 0) AS amount,
      'deposit_reversed' AS type, jsonb_strip_nulls(jsonb_build_object(
        'transaction_id', d.id, 'reference', d.reference, 'currency', 'XOF',
        'payment_method', d.payment_method, 'customer_phone', d.customer_phone, 'status', d.status,
        'previous_status', 'success', 'refund_of', d.refund_of_id)) AS data
    FROM deposit d
    UNION ALL
    SELECT g.ordinal, g.merchant_id, g.payment_method, 'payout:' || g.id,
      g.settled_amount + coalesce((
        SELECT x.requested_amount - x.confirmed_amount FROM settlement_exception x
        WHERE x.merchant_id = g.merchant_id AND x.payout_id = g.id AND x.state = 'paid'), 0),
      'payout_reversed', payout_event_data(g.self, g.status) - 'withheld_amount'
    FROM given g
    UNION ALL
    SELECT r.ordinal, r.merchant_id, r.payment_method, 'recipient:' || r.id,
      r.settled_amount + coalesce((
        SELECT x.requested_amount - x.confirmed_amount FROM settlement_exception x
        WHERE x.merchant_id = r.merchant_id AND x.recipient_id = r.id AND x.state = 'paid'), 0),
      'recipient_reversed', jsonb_build_object(
        'batch_id', r.batch_id, 'recipient_id', r.id, 'name', r.name, 'account', r.account,
        'currency', 'XOF', 'payment_method', r.payment_method, 'status', r.status)
    FROM refunded r
  ), returned_of AS (
    UPDATE batch b SET returned_amount = b.returned_amount + r.amount
    FROM (SELECT (r.data->>'batch_id')::int AS batch_id, sum(r.amount) AS amount FROM back r
      WHERE r.type = 'recipient_reversed' GROUP BY 1) AS r
    WHERE b.id = ANY (batches) AND b.id = r.batch_id
  ), returned AS (
    INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
    SELECT b.merchant_id, b.origin, 'reverse', clearing_account(b.payment_method), 'available', b.amount, at
    FROM back b ORDER BY b.merchant_id, b.ordinal
  ), events AS MATERIALIZED (
    SELECT append_events(array_agg((b.merchant_id, b.type, b.data || jsonb_build_object('amount', b.amount)
      )::new_event ORDER BY b.ordinal), at)
    FROM back b
  ), deposit_answered AS (
    UPDATE operator_request r SET next_check_at = NULL, evidence = coalesce(d.evidence, r.evidence)
    FROM deposit d WHERE r.transaction_id = ANY (deposits) AND r.transaction_id = d.id AND r.kind = 'disburse'
  ), payout_answered AS (
    UPDATE operator_request r SET next_check_at = NULL, evidence = coalesce(g.evidence, r.evidence)
    FROM given g WHERE r.payout_id = ANY (payouts) AND r.payout_id = g.id
  ), recipient_answered AS (
    UPDATE operator_request r SET next_check_at = NULL, evidence = coalesce(b.evidence, r.evidence)
    FROM refunded b WHERE r.recipient_id = ANY (recipients) AND r.recipient_id = b.id
  )
  SELECT i.ordinal::int, b.ordinal IS NOT NULL FROM item i LEFT JOIN back b USING (ordinal)
    CROSS JOIN events ORDER BY 1;
END $$;
