-- Proves the payments of batches, and their reservations, counts, events, requests and approvals.
CREATE OR REPLACE FUNCTION audit_batches(ids int[]) RETURNS TABLE (
  invariant text,
  merchant_id int,
  problem text
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  recipients bigint[] := ARRAY(SELECT r.id FROM batch_recipient r WHERE r.batch_id = ANY (ids));
  origins text[] := ARRAY(
    SELECT 'batch:' || id FROM unnest(ids) AS id UNION ALL SELECT 'recipient:' || id
      FROM unnest(recipients) AS id);
BEGIN
  RETURN QUERY
  WITH found AS (
    SELECT r.batch_id, min(r.merchant_id) AS merchant_id, max(r.merchant_id) AS merchant_id_too,
      count(*) AS n, sum(r.amount) AS total,
      count(*) FILTER (WHERE r.status = 'processing') AS processing, count(*)
        FILTER (WHERE r.status = 'success') AS succeeded,
      count(*) FILTER (WHERE r.status = 'failed') AS failed, count(*)
        FILTER (WHERE r.status = 'cancelled') AS cancelled,
      coalesce(sum(r.settled_amount), 0) AS paid,
      coalesce(sum(CASE x.state WHEN 'paid' THEN r.amount ELSE r.settled_amount END)
        FILTER (WHERE r.reversed_at IS NOT NULL), 0) AS returned
    FROM batch_recipient r LEFT JOIN settlement_exception x ON x.merchant_id = r.merchant_id
      AND x.recipient_id = r.id
    WHERE r.batch_id = ANY (ids) GROUP BY r.batch_id
  )
  SELECT 'batches_are_counted', b.merchant_id, format('batch:%s counts %s, and its recipients are %s', b.id,
    (b.recipient_count, b.total_amount, b.processing_count, b.succeeded_count, b.failed_count,
      b.cancelled_count, b.paid_amount, b.returned_amount), (f.n, f.total, f.processing, f.succeeded,
        f.failed, f.cancelled, f.paid, f.returned))
  FROM batch b LEFT JOIN found f ON f.batch_id = b.id
  WHERE b.id = ANY (ids)
    AND ((b.merchant_id, b.merchant_id, b.recipient_count, b.total_amount, b.processing_count,
      b.succeeded_count, b.failed_count,
        b.cancelled_count, b.paid_amount, b.returned_amount)
      IS DISTINCT FROM (coalesce(f.merchant_id, b.merchant_id), coalesce(f.merchant_id_too, b.merchant_id),
        coalesce(f.n, 0), coalesce(f.total, 0), coalesce(f.processing, 0), coalesce(f.succeeded, 0),
        coalesce(f.failed, 0), coalesce(f.cancelled, 0),        coalesce(f.paid, 0),
          coalesce(f.returned, 0)));

  -- One entry reserves the whole amount when the batch starts or waits for approval; no entry does it
  -- earlier. One entry gives back the amount of the cancelled recipients.
  RETURN QUERY
  WITH moved AS (
    SELECT m.origin, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too,
      sum(m.amount) FILTER (WHERE m.step = 'reserve') AS reserved, sum(m.amount)
        FILTER (WHERE m.step = 'void') AS voided,
      count(*) FILTER (WHERE m.step NOT IN ('reserve', 'void')) AS others
    FROM ledger_entry m WHERE m.origin LIKE 'batch:%' AND m.origin = ANY (origins) GROUP BY m.origin
  ), due AS (
    SELECT 'batch:' || b.id AS origin, b.merchant_id, b.total_amount, b.status,
      b.started_at IS NOT NULL AS started, b.approval <> 'not_required' AS asked,
      (SELECT sum(r.amount) FROM batch_recipient r WHERE r.batch_id = b.id
        AND r.status = 'cancelled') AS cancelled
    FROM batch b WHERE b.id = ANY (ids)
  )
  SELECT 'batches_end_once', coalesce(d.merchant_id, m.merchant_id),
    format('%s over %s is %s: set aside %s, given back %s, cancelled %s',
    coalesce(d.origin, m.origin), d.total_amount, d.status, m.reserved, m.voided, d.cancelled)
  FROM due d FULL JOIN moved m USING (origin)
  WHERE d.origin IS NULL OR CASE WHEN d.started OR d.asked
    THEN (m.merchant_id, m.merchant_id_too, m.reserved, m.voided, m.others)
      IS DISTINCT FROM (d.merchant_id, d.merchant_id, d.total_amount, d.cancelled, 0)
    ELSE m.origin IS NOT NULL END;

  RETURN QUERY SELECT * FROM audit_recipient_money(ids, origins);
  RETURN QUERY SELECT * FROM audit_batch_events(ids, recipients, origins);

  RETURN QUERY
  SELECT 'statuses_agree_with_requests', coalesce(d.merchant_id, r.merchant_id),
    format('recipient:%s is %s, and %s', coalesce(d.id, r.recipient_id), d.status,
    CASE WHEN r.id IS NULL THEN 'nothing was asked of the operator'
      ELSE format('its request over %s by %s is %s, asked about %s',
      r.amount, r.provider, r.state, coalesce(r.next_check_at::text, 'no more')) END)
  FROM (SELECT * FROM batch_recipient d WHERE d.batch_id = ANY (ids)) AS d
  FULL JOIN (
    SELECT r.* FROM operator_request r WHERE r.recipient_id = ANY (recipients)
  ) AS r ON r.recipient_id = d.id
  WHERE CASE WHEN r.id IS NULL THEN d.status NOT IN ('pending', 'cancelled') WHEN d.id IS NULL THEN true ELSE
    (r.merchant_id = d.merchant_id AND r.amount = d.amount AND r.provider = d.payment_method
      AND r.phone = d.account
      AND r.kind = 'disburse' AND CASE d.status
        WHEN 'success' THEN r.state = 'settled'
        WHEN 'failed' THEN r.state IN ('refused', 'closed')
        -- The outcome is open: then the service must ask again, and find it in time.
        WHEN 'processing' THEN r.state IN ('sending', 'unsent', 'accepted', 'doubt')
          AND r.next_check_at >= (SELECT d.at FROM request_due d WHERE d.request_id = r.id)
        ELSE false END) IS NOT TRUE END;

  -- The approved content of a batch never changes; the constraints of the table ensure the approvals.
  RETURN QUERY
  SELECT 'approvals_cover_what_is_paid', b.merchant_id, format('batch:%s differs from its approved content',
    b.id)
  FROM batch b
  WHERE b.approval_digest IS NOT NULL AND b.id = ANY (ids) AND b.approval_digest IS DISTINCT
    FROM batch_digest(b);
END $$;
