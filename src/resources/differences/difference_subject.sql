-- Returns the payment that a difference is about: its origin in the ledger, its operator, whether the
-- operator took it back, the collection that it refunds, and the data of an event about it.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION difference_subject(difference settlement_exception)
RETURNS TABLE (
  origin text,
  payment_method provider,
  is_reversed boolean,
  refund_of_id bigint,
  data jsonb
)
LANGUAGE sql STABLE AS $$
  SELECT 'transaction:' || t.id, t.payment_method, t.status = 'reversed', t.refund_of_id,
    jsonb_strip_nulls(jsonb_build_object(
      'transaction_id', t.id, 'reference', t.reference, 'currency', 'XOF', 'payment_method', t.payment_method,
      'customer_phone', t.customer_phone, 'status', t.status, 'refund_of', t.refund_of_id))
  FROM transaction t WHERE t.id = difference.transaction_id
  UNION ALL
  SELECT 'payout:' || p.id, p.payment_method, p.reversed_at IS NOT NULL, NULL,
    jsonb_strip_nulls(jsonb_build_object(
      'payout_id', p.id, 'reference', p.reference, 'currency', 'XOF', 'payment_method', p.payment_method,
      'destination_phone', p.destination_phone, 'status', p.status))
  FROM payout p WHERE p.id = difference.payout_id
  UNION ALL
  SELECT 'recipient:' || r.id, r.payment_method, r.reversed_at IS NOT NULL, NULL,
    jsonb_build_object(
      'batch_id', r.batch_id, 'recipient_id', r.id, 'name', r.name, 'account', r.account, 'currency', 'XOF',
      'payment_method', r.payment_method, 'status', r.status)
  FROM batch_recipient r WHERE r.id = difference.recipient_id
$$;
