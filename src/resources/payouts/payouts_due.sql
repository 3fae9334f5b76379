-- Selects the payouts of an operator that begin next: among the 512 that have been due longest, the merchants
-- take turns. The planner inlines this function into the calling statement.
CREATE OR REPLACE FUNCTION payouts_due(operator provider, at timestamptz, take int)
RETURNS TABLE (id bigint, merchant_id int) LANGUAGE sql STABLE AS $$
  SELECT turn.id, turn.merchant_id
  FROM (
    SELECT due.*, row_number() OVER (PARTITION BY due.merchant_id ORDER BY due.send_at, due.id) AS nth
    FROM (
      SELECT p.id, p.merchant_id, p.send_at
      FROM payout p
      WHERE p.payment_method = operator AND p.status = 'pending'
        AND p.approval IN ('not_required', 'approved')
        AND p.send_at <= at AND p.merchant_id NOT IN (SELECT m.id FROM merchant m
          WHERE m.status <> 'active')
        AND (p.scheduled_at IS NOT NULL OR p.merchant_id NOT IN (
          SELECT b.merchant_id FROM merchant_balance b WHERE b.receivable > 0))
      ORDER BY p.send_at, p.id LIMIT 512
    ) AS due
  ) AS turn
  ORDER BY turn.nth, turn.send_at, turn.id LIMIT take
$$;
