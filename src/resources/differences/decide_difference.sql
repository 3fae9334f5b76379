-- Decides who has the difference between the amount that was asked and the amount that an operator confirmed.
-- An excess of a collection goes to the merchant (`credited`) or went back to the payer (`returned`). The
-- withheld rest of a payment out goes back to the merchant (`credited`), or the operator did pay it (`paid`).
-- One person proposes, another person decides the same; a different verdict replaces the proposal.
-- @returns the outcome `unknown` where there is no such exception, `decided` where it was decided before,
--   `unfit` where the verdict does not fit it, `proposed` where another person must still agree, else `done`
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION decide_difference(
  exception_id int,
  verdict settlement_exception_state,
  person text,
  why text
)
RETURNS TABLE (outcome text, merchant_id int, origin text, amount bigint, first_person text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  difference settlement_exception;
  paid record;
  is_short boolean;
  is_one_name boolean;
BEGIN
  SELECT x.* INTO difference FROM settlement_exception x WHERE x.id = exception_id;
  IF NOT FOUND THEN
    outcome := 'unknown';
    RETURN NEXT;
    RETURN;
  END IF;
  -- Lock the payment first, in the same order as the functions that settle and reverse it; a refund with the
  -- collection that it gives back.
  PERFORM FROM transaction t WHERE t.id IN (difference.transaction_id, (
    SELECT r.refund_of_id FROM transaction r WHERE r.id = difference.transaction_id))
  ORDER BY t.id FOR UPDATE;
  PERFORM FROM payout p WHERE p.id = difference.payout_id FOR UPDATE;
  PERFORM FROM batch_recipient r WHERE r.id = difference.recipient_id FOR UPDATE;
  SELECT x.* INTO difference FROM settlement_exception x WHERE x.id = exception_id FOR UPDATE;
  SELECT * INTO paid FROM difference_subject(difference);
  merchant_id := difference.merchant_id;
  origin := paid.origin;
  amount := abs(difference.confirmed_amount - difference.requested_amount);
  -- Capitals and white space do not make another person of a name (settlement_exception_two_people).
  SELECT count(DISTINCT lower(regexp_replace(normalize(name, NFKC), '\s', '', 'g'))) = 1 INTO is_one_name
  FROM unnest(ARRAY[difference.proposed_by, person]) AS name;
  is_short := difference.confirmed_amount < difference.requested_amount;
  first_person := difference.proposed_by;
  outcome := CASE
    WHEN difference.state <> 'open' THEN 'decided'
    -- After a reversal the operator has nothing of the payment, so that nothing more was paid.
    WHEN CASE verdict WHEN 'credited' THEN true WHEN 'returned' THEN NOT is_short
      WHEN 'paid' THEN is_short AND NOT paid.is_reversed ELSE false END IS NOT TRUE THEN 'unfit'
    WHEN difference.proposed_state IS DISTINCT FROM verdict OR is_one_name THEN 'proposed'
    ELSE 'done' END;
  IF outcome = 'proposed' THEN
    first_person := person;
    UPDATE settlement_exception x
    SET proposed_state = verdict, proposed_by = person, proposed_reason = why, proposed_at = at
    WHERE x.id = exception_id;
  ELSIF outcome = 'done' THEN
    UPDATE settlement_exception x SET state = verdict, decided_by = person, reason = why, decided_at = at
    WHERE x.id = exception_id;
    INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
    VALUES (merchant_id, origin, CASE WHEN is_short
      THEN CASE verdict WHEN 'credited' THEN 'withheld_credit' ELSE 'withheld_post' END
      ELSE CASE verdict WHEN 'credited' THEN 'excess_credit' ELSE 'excess_return' END END::ledger_step,
      'unallocated',
      CASE verdict WHEN 'credited' THEN 'available' ELSE clearing_account(paid.payment_method) END,
      amount, at);
    PERFORM append_events(ARRAY[(merchant_id, CASE WHEN is_short THEN 'withheld_' ELSE 'payment_excess_' END
      || verdict, paid.data || jsonb_build_object('amount', amount))::new_event]
      || CASE WHEN verdict = 'paid' AND paid.refund_of_id IS NOT NULL
        THEN reverse_refunded(ARRAY[paid.refund_of_id]) END, at);
  END IF;
  RETURN NEXT;
END $$;
