-- Proves that the events of batches report each change of status, and the last ledger entry of each kind (the
-- beginning, the end, a payment in between, a reversal). `audit_batches` calls this function with its own
-- planner settings.
CREATE OR REPLACE FUNCTION audit_batch_events(ids int[], recipients bigint[], origins text[])
RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE sql STABLE AS $$
  WITH events AS (
    SELECT batch_of(event_origin(e.data)) AS batch_id, min(e.merchant_id) AS merchant_id,
      max(e.merchant_id) AS merchant_id_too, count(*) FILTER (WHERE e.type = 'batch_draft'
        AND NOT e.data ? 'previous_status') AS made,
      count(*) FILTER (WHERE e.type = 'batch_pending_approval') AS asked,
      count(*) FILTER (WHERE e.type = 'batch_processing') AS started,
      count(*) FILTER (WHERE e.type = 'bulk_pay_done') AS done,
      count(*) FILTER (WHERE e.type = 'batch_cancelled') AS cancelled,
      coalesce(sum((e.data->>'amount')::bigint) FILTER (WHERE e.type = 'recipient_reversed'), 0) AS returned,
      max(e.data::text) FILTER (WHERE e.type IN ('bulk_pay_done', 'batch_cancelled')) AS last
    FROM event e
    WHERE event_origin(e.data) = ANY (origins)
      AND (e.type LIKE 'batch\_%' OR e.type IN ('bulk_pay_done', 'recipient_reversed')) GROUP BY 1
  ), due AS (
    SELECT b.*, 1 AS made_n, (b.approval <> 'not_required')::int AS asked_n, (
      b.started_at IS NOT NULL)::int AS started_n,
      (b.processed_at IS NOT NULL AND b.started_at IS NOT NULL)::int AS done_n,
      (b.processed_at IS NOT NULL AND b.started_at IS NULL)::int AS cancelled_n
    FROM batch b WHERE b.id = ANY (ids)
  )
  SELECT 'events_report_every_change', coalesce(b.merchant_id, t.merchant_id), CASE
    WHEN b.id IS NULL THEN format('events tell of batch:%s, which is not there', t.batch_id)
    ELSE format('its events do not tell how batch:%s became %s', b.id, b.status) END
  FROM due b FULL JOIN events t ON t.batch_id = b.id
  WHERE t.batch_id IS NULL OR (t.merchant_id, t.merchant_id_too) IS DISTINCT
    FROM (b.merchant_id, b.merchant_id)
    OR (t.made, t.asked, t.started, t.done, t.cancelled, t.returned)
      IS DISTINCT FROM (b.made_n, b.asked_n, b.started_n, b.done_n, b.cancelled_n, b.returned_amount)
    OR t.done + t.cancelled = 1 AND (t.last::jsonb->>'status', t.last::jsonb->>'succeeded_count',
      t.last::jsonb->>'failed_count',
        t.last::jsonb->>'cancelled_count', t.last::jsonb->>'paid_amount')
      IS DISTINCT FROM (b.status::text, b.succeeded_count::text, b.failed_count::text,
        b.cancelled_count::text, b.paid_amount::text)
  UNION ALL
  -- For the last entry of each kind there must be an event of that kind that is not older.
  SELECT 'events_report_every_change', m.merchant_id, format(
    'no event reports the last ledger entry of batch:%s (%s)',
    m.batch_id, m.what)
  FROM (
    SELECT min(m.merchant_id) AS merchant_id, b.id AS batch_id, w.what, max(m.created_at) AS at
    FROM batch b JOIN (
      SELECT m.*, batch_of(m.origin) AS batch_id FROM ledger_entry m WHERE m.origin = ANY (origins)
        AND m.origin LIKE 'batch:%'
      UNION ALL SELECT m.*, r.batch_id FROM ledger_entry m JOIN batch_recipient r
        ON r.id = recipient_of(m.origin)
      WHERE m.origin = ANY (origins) AND m.origin LIKE 'recipient:%' AND r.id = ANY (recipients)
    ) m ON m.batch_id = b.id
    CROSS JOIN LATERAL (SELECT CASE WHEN m.step = 'reserve' THEN 'begun'
      WHEN m.step IN ('reverse', 'withheld_credit', 'withheld_post') THEN m.step || m.origin
      WHEN b.processed_at = m.created_at THEN 'ended' ELSE 'moved' END AS what) w
    WHERE b.id = ANY (ids) GROUP BY b.id, w.what
  ) m LEFT JOIN (
    SELECT batch_of(event_origin(e.data)) AS batch_id, w.what, max(e.created_at) AS at
    FROM event e CROSS JOIN LATERAL (VALUES
      (CASE WHEN e.type IN ('batch_processing', 'batch_pending_approval') THEN 'begun' END),
      (CASE WHEN e.type IN ('bulk_pay_done', 'batch_cancelled') THEN 'ended' END),
      (CASE WHEN e.type IN ('bulk_pay_done', 'batch_cancelled', 'batch_progress') THEN 'moved' END),
      (CASE e.type WHEN 'recipient_reversed' THEN 'reverse' WHEN 'withheld_credited' THEN 'withheld_credit'
        WHEN 'withheld_paid' THEN 'withheld_post' END || 'recipient:' || (e.data->>'recipient_id'))
    ) AS w (what)
    WHERE event_origin(e.data) = ANY (origins) AND w.what IS NOT NULL GROUP BY 1, 2
  ) t ON t.batch_id = m.batch_id AND t.what = m.what
  WHERE t.at IS NULL OR t.at < m.at
$$;
