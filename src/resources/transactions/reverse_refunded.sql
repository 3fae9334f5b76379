-- Sets collections that refunds have given back in full to `reversed`. The caller has locked their rows, and
-- appends the events that this function returns.
CREATE OR REPLACE FUNCTION reverse_refunded(ids bigint[]) RETURNS new_event[]
LANGUAGE plpgsql AS $$
DECLARE
  events new_event[];
BEGIN
  WITH given AS MATERIALIZED (
    SELECT i.id, r.paid AS amount FROM unnest(ids) AS i (id) CROSS JOIN LATERAL refunds_of(i.id) AS r
    WHERE r.paid > 0
  ), ended AS (
    UPDATE transaction t SET status = 'reversed' FROM given g
    WHERE t.id = ANY (ids) AND t.id = g.id AND t.status = 'success' AND t.settled_amount <= g.amount
    RETURNING t.*, t AS self
  )
  SELECT array_agg((e.merchant_id, 'payment_reversed', payment_event_data(e.self, 'success', NULL) ||
    '{"refunded": true}')::new_event ORDER BY e.id) INTO events FROM ended e;
  RETURN events;
END $$;
