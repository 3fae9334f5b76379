-- Sets collections that refunds have given back in full to `reversed`, and writes their events. The caller
-- has locked their rows.
CREATE OR REPLACE FUNCTION end_refunded(ids bigint[], at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  WITH given AS MATERIALIZED (
    SELECT r.refund_of_id AS id, sum(r.settled_amount) AS amount
    FROM transaction r WHERE r.refund_of_id = ANY (ids) AND r.status = 'success' GROUP BY 1
  ), ended AS (
    UPDATE transaction t SET status = 'reversed' FROM given g
    WHERE t.id = ANY (ids) AND t.id = g.id AND t.status = 'success' AND t.settled_amount <= g.amount
    RETURNING t.*, t AS self
  )
  INSERT INTO event (merchant_id, type, data, created_at)
  SELECT e.merchant_id, 'payment_reversed', payment_event_data(e.self, 'success', NULL) ||
    '{"refunded": true}', at
  FROM ended e ORDER BY e.merchant_id, e.id;
END $$;

REVOKE EXECUTE ON FUNCTION end_refunded FROM PUBLIC;
