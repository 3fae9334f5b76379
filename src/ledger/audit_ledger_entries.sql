-- Proves the ledger entries with ids above `after`, up to `upto`: each has one origin, which exists, and
-- moves money between the accounts of its step. The sums of the entries are proven with their origins
-- (`audit_subjects`) and with the balances (`audit_balances`).
CREATE OR REPLACE FUNCTION audit_ledger_entries(after bigint, upto bigint)
  RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT 'reservations_end_once', ended.merchant_id, ended.origin || ' ended unlike its reservation'
  FROM ledger_entry ended LEFT JOIN ledger_entry reserved ON reserved.origin = ended.origin
    AND reserved.step = 'reserve'
    LEFT JOIN ledger_entry other ON other.origin = ended.origin AND other.step IN ('release', 'withhold')
      AND ended.step = 'post'
  -- The reservation of a batch ends in parts, one for each recipient: see `audit_batches`.
  WHERE ended.step IN ('post', 'void') AND ended.id > after AND ended.id <= upto
    AND ended.origin NOT LIKE 'recipient:%'
    AND ended.origin NOT LIKE 'batch:%' AND (ended.merchant_id, ended.amount + coalesce(other.amount, 0),
      ended.debit)
      IS DISTINCT FROM (reserved.merchant_id, reserved.amount, reserved.credit)
  UNION ALL
  SELECT 'reservations_end_once', one.merchant_id, one.origin || ' was paid out and given back'
  FROM ledger_entry one JOIN ledger_entry other ON other.origin = one.origin
  WHERE one.id > after AND one.id <= upto
    AND (one.step = 'post' AND other.step = 'void' OR one.step = 'void' AND other.step = 'post');

  RETURN QUERY
  SELECT 'entries_have_one_origin', m.merchant_id, format('%s has %s twice', m.origin, m.step)
  FROM ledger_entry m JOIN ledger_entry other ON other.origin = m.origin AND other.step = m.step
    AND other.id <> m.id
  WHERE m.id > after AND m.id <= upto
  UNION ALL
  SELECT 'entries_have_one_origin', m.merchant_id,
    format('%s from %s to %s for %s is no valid movement', m.step, m.debit, m.credit, m.origin)
  FROM ledger_entry m LEFT JOIN transaction t ON t.id = transaction_of(m.origin)
  WHERE m.id > after AND m.id <= upto AND NOT (CASE m.step
    WHEN 'fund' THEN m.origin LIKE 'funding:%' AND m.debit = 'funding' AND m.credit = 'available'
    WHEN 'credit' THEN t.merchant_id = m.merchant_id AND m.credit = 'available'
      AND m.debit::text LIKE 'clearing\_%'
    WHEN 'reverse' THEN CASE WHEN t.transaction_type = 'pay'
      THEN t.merchant_id = m.merchant_id AND m.debit = 'available' AND m.credit::text LIKE 'clearing\_%'
      ELSE (t.merchant_id = m.merchant_id OR m.origin ~ '^(payout|batch|recipient):.')
        AND m.debit::text LIKE 'clearing\_%' AND m.credit = 'available' END
    WHEN 'shortfall' THEN t.merchant_id = m.merchant_id AND m.debit = 'suspense'
      AND m.credit::text LIKE 'clearing\_%'
    WHEN 'excess' THEN t.merchant_id = m.merchant_id AND m.credit = 'unallocated'
      AND m.debit::text LIKE 'clearing\_%'
    WHEN 'excess_credit' THEN t.merchant_id = m.merchant_id AND m.debit = 'unallocated'
      AND m.credit = 'available'
    WHEN 'excess_return' THEN t.merchant_id = m.merchant_id AND m.debit = 'unallocated'
      AND m.credit::text LIKE 'clearing\_%'
    WHEN 'withheld_credit' THEN m.debit = 'unallocated' AND m.credit = 'available'
      AND (t.merchant_id = m.merchant_id OR m.origin ~ '^(payout|recipient):.')
    WHEN 'withheld_post' THEN m.debit = 'unallocated' AND m.credit::text LIKE 'clearing\_%'
      AND (t.merchant_id = m.merchant_id OR m.origin ~ '^(payout|recipient):.')
    WHEN 'recover' THEN m.origin LIKE 'receivable:%' AND m.debit = 'available' AND m.credit = 'suspense'
    ELSE (t.merchant_id = m.merchant_id OR m.origin ~ '^(payout|batch|recipient):.') AND CASE m.step
      WHEN 'reserve' THEN m.debit = 'available' AND m.credit = 'reserved'
      WHEN 'withhold' THEN m.debit = 'reserved' AND m.credit = 'unallocated'
      WHEN 'post' THEN m.debit = 'reserved' AND m.credit::text LIKE 'clearing\_%'
        AND m.credit = coalesce(clearing_account(t.payment_method), m.credit)
      ELSE m.debit = 'reserved' AND m.credit = 'available' END END IS TRUE)
  UNION ALL
  SELECT 'entries_have_one_origin', m.merchant_id,
    format('%s for %s, which is no payout of the merchant', m.step, m.origin)
  FROM ledger_entry m LEFT JOIN payout p ON p.id = payout_of(m.origin)
  WHERE m.id > after AND m.id <= upto AND m.origin LIKE 'payout:%' AND p.merchant_id IS DISTINCT
    FROM m.merchant_id
  UNION ALL
  SELECT 'entries_have_one_origin', m.merchant_id,
    format('%s for %s, which is no batch or recipient of the merchant', m.step, m.origin)
  FROM ledger_entry m LEFT JOIN batch_recipient r ON r.id = recipient_of(m.origin)
    LEFT JOIN batch b ON b.id = coalesce(batch_of(m.origin), r.batch_id)
  WHERE m.id > after AND m.id <= upto AND (m.origin LIKE 'batch:%' OR m.origin LIKE 'recipient:%')
    AND b.merchant_id IS DISTINCT FROM m.merchant_id;

  -- Reports the origins that do not exist.
  RETURN QUERY SELECT * FROM audit_subjects(
    ARRAY(
      SELECT DISTINCT transaction_of(m.origin) FROM ledger_entry m
      WHERE m.id > after AND m.id <= upto AND NOT EXISTS (SELECT FROM transaction t
        WHERE t.id = transaction_of(m.origin))
        AND transaction_of(m.origin) IS NOT NULL),
    ARRAY(
      SELECT DISTINCT payout_of(m.origin) FROM ledger_entry m
      WHERE m.id > after AND m.id <= upto AND NOT EXISTS (SELECT FROM payout p
        WHERE p.id = payout_of(m.origin))
        AND payout_of(m.origin) IS NOT NULL),
    ARRAY(
      SELECT DISTINCT batch_of(m.origin) FROM ledger_entry m
      WHERE m.id > after AND m.id <= upto AND NOT EXISTS (SELECT FROM batch b WHERE b.id = batch_of(m.origin))
        AND batch_of(m.origin) IS NOT NULL), '{}');
  RETURN QUERY
  SELECT 'batches_end_once', m.merchant_id, format('%s over %s for %s, which is not there', m.step, m.amount,
    m.origin)
  FROM ledger_entry m
  WHERE m.id > after AND m.id <= upto AND recipient_of(m.origin) IS NOT NULL
    AND NOT EXISTS (SELECT FROM batch_recipient r WHERE r.id = recipient_of(m.origin));
END $$;
