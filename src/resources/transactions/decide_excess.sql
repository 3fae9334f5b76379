-- Decides once who gets the excess of a payment: `credited` gives it to the merchant, `returned` states that
-- a person gave it back to the payer through the operator. @returns `unknown` where there is no such excess,
-- `decided` where another call decided it before, else `done`
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION decide_excess(
  exception_id int,
  verdict settlement_exception_state,
  person text,
  why text
)
RETURNS TABLE (outcome text, merchant_id int, transaction_id bigint, amount bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  paid transaction;
  decided settlement_exception;
BEGIN
  -- Lock the transaction first, in the same order as the functions that settle and reverse it.
  SELECT t.* INTO paid FROM transaction t
  WHERE (t.merchant_id, t.id) IN (
    SELECT x.merchant_id, x.transaction_id FROM settlement_exception x WHERE x.id = exception_id) FOR UPDATE;
  IF NOT FOUND THEN
    RETURN QUERY SELECT 'unknown', NULL::int, NULL::bigint, NULL::bigint;
    RETURN;
  END IF;
  UPDATE settlement_exception x SET state = verdict, decided_by = person, reason = why, decided_at = at
  WHERE x.id = exception_id AND x.state = 'open' RETURNING x.* INTO decided;
  IF NOT FOUND THEN
    RETURN QUERY SELECT 'decided', paid.merchant_id, paid.id, NULL::bigint;
    RETURN;
  END IF;
  amount := decided.confirmed_amount - decided.requested_amount;
  INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
  VALUES (paid.merchant_id, 'transaction:' || paid.id,
    CASE verdict WHEN 'credited' THEN 'excess_credit' ELSE 'excess_return' END::ledger_step, 'unallocated',
    CASE verdict WHEN 'credited' THEN 'available' ELSE clearing_account(paid.payment_method) END, amount, at);
  PERFORM append_events(ARRAY[(paid.merchant_id, 'payment_excess_' || verdict, jsonb_build_object(
    'transaction_id', paid.id, 'reference', paid.reference, 'amount', amount, 'currency', 'XOF',
    'payment_method', paid.payment_method, 'customer_phone', paid.customer_phone, 'status', paid.status)
    )::new_event], at);
  RETURN QUERY SELECT 'done', paid.merchant_id, paid.id, amount;
END $$;
