-- Proves that each excess (the amount that an operator confirmed beyond the requested one) is booked once and
-- decided once. `audit_collections` calls this function with its own planner settings.
CREATE OR REPLACE FUNCTION audit_excesses(ids bigint[], origins text[])
RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE sql STABLE AS $$
  WITH money AS (
    SELECT m.origin, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too,
      sum(m.amount) FILTER (WHERE m.step = 'excess') AS kept, sum(m.amount)
        FILTER (WHERE m.step = 'excess_credit') AS credited,
      sum(m.amount) FILTER (WHERE m.step = 'excess_return') AS returned,
      min(CASE m.step WHEN 'excess' THEN m.debit WHEN 'excess_return' THEN m.credit END) AS account,
      max(CASE m.step WHEN 'excess' THEN m.debit WHEN 'excess_return' THEN m.credit END) AS account_too
    FROM ledger_entry m WHERE m.step IN ('excess', 'excess_credit', 'excess_return')
      AND m.origin = ANY (origins)
      GROUP BY m.origin
  ), due AS (
    SELECT x.*, 'transaction:' || t.id AS origin, x.confirmed_amount - x.requested_amount AS amount,
      clearing_account(t.payment_method) AS account,
      t.transaction_type = 'pay' AND t.amount = x.requested_amount
        AND t.settled_amount = x.requested_amount AS agrees
    FROM transaction t JOIN settlement_exception x ON x.merchant_id = t.merchant_id
      AND x.transaction_id = t.id
    -- The exceptions of deposits are proven with their money (`audit_disbursed_money`).
    WHERE t.id = ANY (ids) AND (t.transaction_type = 'pay' OR x.confirmed_amount > x.requested_amount)
  )
  SELECT 'collections_credited_once', coalesce(d.merchant_id, m.merchant_id),
    format('%s has an excess of %s that is %s: kept %s, credited %s, returned %s',
      coalesce(d.origin, m.origin), coalesce(d.amount, 0), coalesce(d.state::text, 'unknown'),
      coalesce(m.kept, 0), coalesce(m.credited, 0), coalesce(m.returned, 0))
  FROM due d FULL JOIN money m USING (origin)
  WHERE d.agrees IS NOT TRUE
    OR (m.merchant_id, m.merchant_id_too, m.kept, m.credited, m.returned, m.account, m.account_too)
      IS DISTINCT FROM
      (d.merchant_id, d.merchant_id, d.amount, CASE d.state WHEN 'credited' THEN d.amount END,
        CASE d.state WHEN 'returned' THEN d.amount END, d.account, d.account)
$$;
