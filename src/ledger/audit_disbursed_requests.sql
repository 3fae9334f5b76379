-- Returns each deposit, refund or payout that does not match its request to the operator: in its status,
-- merchant, amount, operator or phone number. Returns also the requests that belong to no such payment.
-- `audit_disbursements` calls this function with its own planner settings.
CREATE OR REPLACE FUNCTION audit_disbursed_requests(ids bigint[], payout_ids bigint[])
RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE sql STABLE AS $$
  WITH subject AS (
    SELECT 'transaction:' || t.id AS origin, t.id AS transaction_id, NULL::bigint AS payout_id, t.merchant_id,
      t.payment_method, t.customer_phone AS phone, t.amount, CASE t.status WHEN 'success' THEN 'completed'
        ELSE t.status::text END AS status
    FROM transaction t WHERE t.transaction_type = 'deposit' AND t.id = ANY (ids)
    UNION ALL
    SELECT 'payout:' || p.id, NULL, p.id, p.merchant_id, p.payment_method, p.destination_phone, p.amount,
      p.status::text
    FROM payout p WHERE p.id = ANY (payout_ids)
  ), asked AS (
    SELECT r.*, coalesce('payout:' || r.payout_id, 'transaction:' || r.transaction_id) AS origin
    FROM operator_request r
    WHERE r.kind = 'disburse' AND r.recipient_id IS NULL AND (r.transaction_id = ANY (ids)
      OR r.payout_id = ANY (payout_ids))
  )
  SELECT 'statuses_agree_with_requests', coalesce(s.merchant_id, r.merchant_id), format('%s is %s, and %s',
    coalesce(s.origin, r.origin), coalesce(s.status, 'no payment out'),
    CASE WHEN r.id IS NULL THEN 'nothing was asked of the operator'
      ELSE format('its request over %s by %s is %s, asked about %s',
      r.amount, r.provider, r.state, coalesce(r.next_check_at::text, 'no more')) END)
  FROM subject s FULL JOIN asked r USING (origin)
  WHERE CASE
    -- A payment that never began has no request.
    WHEN r.id IS NULL THEN s.status NOT IN ('pending', 'cancelled')
      AND NOT (s.status = 'failed' AND NOT EXISTS (
      SELECT FROM ledger_entry m WHERE m.origin = s.origin AND m.step = 'reserve'))
    WHEN s.origin IS NULL THEN true
    ELSE (r.merchant_id = s.merchant_id AND r.amount = s.amount AND r.provider = s.payment_method
      AND r.phone = s.phone
      AND CASE s.status
        WHEN 'completed' THEN r.state = 'settled'
        WHEN 'reversed' THEN r.state = 'settled'
        WHEN 'failed' THEN r.state IN ('refused', 'closed') AND EXISTS (
          SELECT FROM ledger_entry m WHERE m.origin = s.origin AND m.step = 'reserve')
        -- The outcome is open: then the service must ask again, and find it in time.
        WHEN 'processing' THEN r.state IN ('sending', 'unsent', 'accepted', 'doubt')
          AND r.next_check_at >= (SELECT d.at FROM request_due d WHERE d.request_id = r.id)
        ELSE false END) IS NOT TRUE END
  UNION ALL
  SELECT 'statuses_agree_with_requests', r.merchant_id,
    format('transaction:%s is a payment out, and has a request to collect', r.transaction_id)
  FROM operator_request r JOIN transaction t ON t.id = r.transaction_id
  WHERE r.kind = 'collect' AND t.transaction_type <> 'pay' AND r.transaction_id = ANY (ids)
    AND t.id = ANY (ids)
$$;
