-- Returns the recipients that are next, each with its position among those of its operator (`ordinal`).
-- Merchants take turns, and so do the batches of one merchant. A batch gets no more than its free slots:
-- `batch_max` less its running calls. PostgreSQL inlines this function into the calling statement.
CREATE OR REPLACE FUNCTION recipients_due(
  open provider[],
  rooms int[],
  busy_batches int[],
  busy_operators provider[],
  batch_max int
) RETURNS TABLE (id bigint, batch_id int, merchant_id int, operator provider, room int, ordinal bigint)
LANGUAGE sql STABLE AS $$
  SELECT turn.id, turn.batch_id, turn.merchant_id, turn.operator, turn.room, row_number() OVER (
    PARTITION BY turn.operator ORDER BY turn.nth, turn.merchant_turn_at NULLS FIRST, turn.id) AS ordinal
  FROM (
    SELECT due.id, due.batch_id, due.merchant_id, due.operator, due.room,
      max(due.turn_at) OVER (PARTITION BY due.merchant_id) AS merchant_turn_at,
      row_number() OVER (PARTITION BY due.merchant_id ORDER BY due.nth, due.turn_at NULLS FIRST,
        due.batch_id) AS nth
    FROM (
      SELECT r.id, b.id AS batch_id, b.merchant_id, b.turn_at, here.operator, here.room,
        batch_max - going.n AS free, row_number() OVER (PARTITION BY b.id ORDER BY r.nth,
          here.operator) AS nth
      FROM batch b
      CROSS JOIN LATERAL (
        SELECT count(*)::int AS n FROM unnest(busy_batches) AS u (id) WHERE u.id = b.id
      ) AS going
      CROSS JOIN LATERAL (
        -- The open operators for which the batch has unsent recipients; they share `batch_max` equally.
        SELECT o.operator, o.room, batch_max / (count(*) OVER ())::int - (
            SELECT count(*) FROM unnest(busy_batches, busy_operators) AS u (id, operator)
            WHERE u.id = b.id AND u.operator = o.operator)::int AS share
        FROM unnest(open, rooms) AS o (operator, room)
        -- Read the first unsent recipient by the index. EXISTS would be slow: a plan made while the index was
        -- empty reads the whole index for each batch.
        WHERE (
          SELECT r.id FROM batch_recipient r
          WHERE (r.payment_method, r.batch_id) BETWEEN (o.operator, b.id) AND (o.operator, b.id)
            AND r.sent_at IS NULL
          ORDER BY r.payment_method, r.batch_id, r.id LIMIT 1) IS NOT NULL
      ) AS here
      CROSS JOIN LATERAL (
        SELECT next.id, row_number() OVER (ORDER BY next.id) AS nth
        FROM (
          -- Only the index of unsent recipients can answer a query of this form, so that the planner cannot
          -- choose another index.
          SELECT r.id FROM batch_recipient r
          WHERE (r.payment_method, r.batch_id) BETWEEN (here.operator, b.id) AND (here.operator, b.id)
            AND r.sent_at IS NULL
          ORDER BY r.payment_method, r.batch_id, r.id LIMIT greatest(0, least(here.room, here.share))
        ) AS next
      ) AS r
      WHERE b.status = 'processing' AND b.cancel_requested_at IS NULL
        AND b.merchant_id NOT IN (SELECT m.id FROM merchant m WHERE m.status <> 'active')
        AND b.merchant_id NOT IN (SELECT o.merchant_id FROM merchant_balance o WHERE o.receivable > 0)
    ) AS due
    WHERE due.nth <= due.free
  ) AS turn
$$;
