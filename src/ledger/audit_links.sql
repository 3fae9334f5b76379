-- Proves the counts of payment links, and the events of their payments.
CREATE OR REPLACE FUNCTION audit_links(ids int[], transaction_ids bigint[])
  RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  origins text[] := ARRAY(SELECT 'transaction:' || id FROM unnest(transaction_ids) AS id);
BEGIN
  RETURN QUERY
  WITH found AS (
    SELECT t.payment_link_id, min(t.merchant_id) AS merchant_id, max(t.merchant_id) AS merchant_id_too,
      count(*) FILTER (WHERE t.status IN ('success', 'reversed')) AS used,
      count(*) FILTER (WHERE t.status IN ('pending', 'processing')) AS open
    FROM transaction t WHERE t.payment_link_id IS NOT NULL AND t.payment_link_id = ANY (ids)
    GROUP BY t.payment_link_id
  )
  SELECT 'links_are_counted', l.merchant_id,
    format('payment_link:%s counts %s paid and %s open, and %s and %s are there', l.id, l.usage_count,
      l.open_count, coalesce(f.used, 0), coalesce(f.open, 0))
  FROM payment_link l LEFT JOIN found f ON f.payment_link_id = l.id
  WHERE l.id = ANY (ids) AND (l.merchant_id, l.merchant_id, l.usage_count, l.open_count)
    IS DISTINCT FROM (coalesce(f.merchant_id, l.merchant_id), coalesce(f.merchant_id_too, l.merchant_id),
      coalesce(f.used, 0), coalesce(f.open, 0));

  RETURN QUERY
  WITH events AS (
    SELECT transaction_of(event_origin(e.data)) AS id, count(*) AS times, min(e.merchant_id) AS merchant_id,
      max(e.merchant_id) AS merchant_id_too, min((e.data->>'payment_link_id')::int) AS link,
      min((e.data->>'amount')::bigint) AS amount
    FROM event e WHERE event_origin(e.data) = ANY (origins) AND e.type = 'payment_link_used' GROUP BY 1
  ), paid AS (
    SELECT t.* FROM transaction t
    WHERE t.id = ANY (transaction_ids) AND t.payment_link_id IS NOT NULL
      AND t.status IN ('success', 'reversed')
  )
  SELECT 'events_report_every_change', coalesce(p.merchant_id, events.merchant_id),
    format('%s events tell that payment_link:%s was used by transaction:%s', coalesce(events.times, 0),
      coalesce(p.payment_link_id, events.link), coalesce(p.id, events.id))
  FROM paid p FULL JOIN events ON events.id = p.id
  WHERE (events.times, events.merchant_id, events.merchant_id_too, events.link, events.amount)
    IS DISTINCT FROM (1, p.merchant_id, p.merchant_id, p.payment_link_id, p.settled_amount);
END $$;
