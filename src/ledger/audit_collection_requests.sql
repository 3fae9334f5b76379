-- Proves that the requests to operators for collections agree with their statuses, and that each collection
-- has one request. `audit_collections` calls this function with its own planner settings.
CREATE OR REPLACE FUNCTION audit_collection_requests(ids bigint[])
RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE sql STABLE AS $$
  SELECT 'statuses_agree_with_requests', t.merchant_id, format('transaction:%s is %s, and %s', t.id, t.status,
    CASE WHEN r.id IS NULL THEN 'nothing was asked of the operator'
      ELSE format('its request over %s by %s is %s, asked about %s%s', r.amount, r.provider, r.state,
        coalesce(r.next_check_at::text, 'no more'), '; the operator said ' || (r.evidence->>'amount')) END)
  FROM transaction t
    LEFT JOIN settlement_exception x ON x.merchant_id = t.merchant_id AND x.transaction_id = t.id
  LEFT JOIN (SELECT * FROM operator_request WHERE transaction_id = ANY (ids) AND kind = 'collect') r
    ON r.merchant_id = t.merchant_id AND r.transaction_id = t.id
  WHERE t.transaction_type = 'pay' AND t.id = ANY (ids)
    AND (r.amount = t.amount AND r.provider = t.payment_method AND CASE t.status
      -- The credited amount plus the kept excess is the amount that the operator confirmed.
      WHEN 'success' THEN r.state = 'settled'
        AND coalesce((r.evidence->>'amount')::numeric = coalesce(x.confirmed_amount, t.settled_amount), true)
      WHEN 'reversed' THEN r.state = 'settled'
      WHEN 'failed' THEN r.state IN ('refused', 'closed')
      WHEN 'cancelled' THEN r.state = 'closed'
      WHEN 'expired' THEN r.state NOT IN ('settled', 'refused')
      -- The outcome is open: then the service must ask again, and find it in time.
      ELSE r.state IN ('sending', 'unsent', 'accepted', 'doubt')
        AND r.next_check_at >= (SELECT d.at FROM request_due d WHERE d.request_id = r.id) END) IS NOT TRUE
  UNION ALL
  SELECT 'statuses_agree_with_requests', r.merchant_id, format(
    'transaction:%s was asked of the operator twice', r.transaction_id)
  FROM operator_request r JOIN operator_request other
    ON other.transaction_id = r.transaction_id AND other.merchant_id = r.merchant_id AND other.kind = r.kind
      AND other.id < r.id
  WHERE r.transaction_id = ANY (ids) AND other.transaction_id = ANY (ids)
$$;
