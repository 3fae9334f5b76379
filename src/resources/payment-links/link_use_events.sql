-- Returns an event for each collection by a payment link that these events report as paid, with the count of
-- uses of the link. The caller has locked the links, and `record_link_use` has counted these uses.
CREATE OR REPLACE FUNCTION link_use_events(events new_event[]) RETURNS new_event[]
LANGUAGE sql STABLE AS $$
  SELECT array_agg((u.merchant_id, 'payment_link_used', jsonb_build_object(
    'payment_link_id', (u.link).id, 'url_slug', (u.link).url_slug, 'transaction_id', u.id, 'reference',
    u.reference, 'amount', u.settled_amount, 'currency', 'XOF', 'usage_count', (u.link).usage_count - u.later)
    )::new_event ORDER BY u.id)
  FROM (
    -- No join, because callers may have switched nested loops off: then a join would scan the links.
    SELECT t.id, t.merchant_id, t.reference, t.settled_amount,
      (SELECT l FROM payment_link l WHERE l.id = t.payment_link_id) AS link,
      count(*) OVER (PARTITION BY t.payment_link_id ORDER BY t.id DESC) - 1 AS later
    FROM transaction t
    WHERE t.payment_link_id IS NOT NULL AND t.id = ANY (ARRAY(
      SELECT (e.data->>'transaction_id')::bigint FROM unnest(events) AS e WHERE e.type = 'payment_received'))
  ) AS u
$$;
