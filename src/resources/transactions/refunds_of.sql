-- Returns what the refunds of a collection have paid, and what of them is open: under way, or withheld
-- because the operator confirmed less than was asked. A subquery finds the decision, because with a join the
-- planner reads whole tables where they were analysed while their rows were dead.
-- Granted to payments_service and payments_merchant.
CREATE OR REPLACE FUNCTION refunds_of(collection bigint) RETURNS TABLE (paid bigint, open bigint)
LANGUAGE sql STABLE AS $$
  SELECT
    coalesce(sum(CASE g.difference WHEN 'paid' THEN g.amount ELSE g.settled_amount END)
      FILTER (WHERE g.status = 'success'), 0)::bigint,
    coalesce(sum(CASE WHEN g.status = 'success' THEN g.amount - g.settled_amount ELSE g.amount END)
      FILTER (WHERE g.status IN ('pending', 'processing') OR g.status = 'success' AND g.difference = 'open'),
      0)::bigint
  FROM (
    SELECT r.status, r.amount, r.settled_amount, (
      SELECT x.state FROM settlement_exception x WHERE x.merchant_id = r.merchant_id
        AND x.transaction_id = r.id) AS difference
    FROM transaction r WHERE r.refund_of_id = collection
  ) AS g
$$;
