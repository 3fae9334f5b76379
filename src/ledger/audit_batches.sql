-- Proves what batches paid, and leaves it out where single payments are proven.
CREATE OR REPLACE FUNCTION audit_batches(ids int[]) RETURNS TABLE (invariant text, merchant_id int,
  problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  recipients bigint[] := ARRAY(SELECT r.id FROM batch_recipient r WHERE r.batch_id = ANY (ids));
  causes text[] := ARRAY(
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
      coalesce(sum(r.settled_amount) FILTER (WHERE r.reversed_at IS NOT NULL), 0) AS returned
    FROM batch_recipient r WHERE r.batch_id = ANY (ids) GROUP BY r.batch_id
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

  -- All of a batch is set aside in one movement, none of a draft; what is cancelled of it is given back in
  -- one.
  RETURN QUERY
  WITH moved AS (
    SELECT m.cause, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too,
      sum(m.amount) FILTER (WHERE m.step = 'reserve') AS reserved, sum(m.amount)
        FILTER (WHERE m.step = 'void') AS voided,
      count(*) FILTER (WHERE m.step NOT IN ('reserve', 'void')) AS others
    FROM movement m WHERE m.cause LIKE 'batch:%' AND m.cause = ANY (causes) GROUP BY m.cause
  ), due AS (
    SELECT 'batch:' || b.id AS cause, b.merchant_id, b.total_amount, b.status,
      b.started_at IS NOT NULL AS started, b.approval <> 'not_required' AS asked,
      (SELECT sum(r.amount) FROM batch_recipient r WHERE r.batch_id = b.id
        AND r.status = 'cancelled') AS cancelled
    FROM batch b WHERE b.id = ANY (ids)
  )
  SELECT 'batches_end_once', coalesce(d.merchant_id, m.merchant_id),
    format('%s over %s is %s: set aside %s, given back %s, cancelled %s',
    coalesce(d.cause, m.cause), d.total_amount, d.status, m.reserved, m.voided, d.cancelled)
  FROM due d FULL JOIN moved m USING (cause)
  WHERE d.cause IS NULL OR CASE WHEN d.started OR d.asked
    THEN (m.merchant_id, m.merchant_id_too, m.reserved, m.voided, m.others)
      IS DISTINCT FROM (d.merchant_id, d.merchant_id, d.total_amount, d.cancelled, 0)
    ELSE m.cause IS NOT NULL END;

  RETURN QUERY
  WITH money AS (
    SELECT m.cause, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too,
      sum(m.amount) FILTER (WHERE m.step = 'post') AS posted, sum(m.amount)
        FILTER (WHERE m.step = 'release') AS released,
      sum(m.amount) FILTER (WHERE m.step = 'void') AS voided, sum(m.amount)
        FILTER (WHERE m.step = 'reverse') AS reversed,
      count(*) FILTER (WHERE m.step NOT IN ('post', 'release', 'void', 'reverse')) AS others,
      min(CASE m.step WHEN 'post' THEN m.credit WHEN 'reverse' THEN m.debit END) AS account,
      max(CASE m.step WHEN 'post' THEN m.credit WHEN 'reverse' THEN m.debit END) AS account_too
    FROM movement m WHERE m.cause LIKE 'recipient:%' AND m.cause = ANY (causes) GROUP BY m.cause
  ), due AS (
    SELECT 'recipient:' || r.id AS cause, r.* FROM batch_recipient r WHERE r.batch_id = ANY (ids)
  )
  SELECT 'batches_end_once', coalesce(d.merchant_id, m.merchant_id),
    format('%s over %s is %s: paid %s, given back %s, returned %s',
    coalesce(d.cause, m.cause), d.amount, d.status, m.posted,
      coalesce(m.released, 0) + coalesce(m.voided, 0), m.reversed)
  FROM due d FULL JOIN money m USING (cause)
  WHERE d.cause IS NULL OR CASE WHEN d.status IN ('success', 'failed')
    THEN (m.merchant_id, m.merchant_id_too, m.posted, coalesce(m.released, 0), m.voided, m.reversed, m.others)
        IS DISTINCT FROM (d.merchant_id, d.merchant_id, d.settled_amount,
          coalesce(d.amount - d.settled_amount, 0),
          CASE d.status WHEN 'failed' THEN d.amount END, CASE WHEN d.reversed_at IS NOT NULL
            THEN d.settled_amount END, 0)
      OR d.status = 'success' AND (m.account, m.account_too)
        IS DISTINCT FROM (clearing_account(d.payment_method), clearing_account(d.payment_method))
    ELSE m.cause IS NOT NULL END;

  RETURN QUERY
  WITH told AS (
    SELECT batch_of(event_cause(e.data)) AS batch_id, min(e.merchant_id) AS merchant_id,
      max(e.merchant_id) AS merchant_id_too, count(*) FILTER (WHERE e.type = 'batch_draft'
        AND NOT e.data ? 'previous_status') AS made,
      count(*) FILTER (WHERE e.type = 'batch_pending_approval') AS asked,
      count(*) FILTER (WHERE e.type = 'batch_processing') AS started,
      count(*) FILTER (WHERE e.type = 'bulk_pay_done') AS done,
      count(*) FILTER (WHERE e.type = 'batch_cancelled') AS cancelled,
      coalesce(sum((e.data->>'amount')::bigint) FILTER (WHERE e.type = 'recipient_reversed'), 0) AS returned,
      max(e.data::text) FILTER (WHERE e.type IN ('bulk_pay_done', 'batch_cancelled')) AS last
    FROM event e
    WHERE event_cause(e.data) = ANY (causes)
      AND (e.type LIKE 'batch\_%' OR e.type IN ('bulk_pay_done', 'recipient_reversed')) GROUP BY 1
  ), due AS (
    SELECT b.*, 1 AS made_n, (b.approval <> 'not_required')::int AS asked_n, (
      b.started_at IS NOT NULL)::int AS started_n,
      (b.processed_at IS NOT NULL AND b.started_at IS NOT NULL)::int AS done_n,
      (b.processed_at IS NOT NULL AND b.started_at IS NULL)::int AS cancelled_n
    FROM batch b WHERE b.id = ANY (ids)
  )
  SELECT 'events_tell_every_change', coalesce(b.merchant_id, t.merchant_id), CASE
    WHEN b.id IS NULL THEN format('events tell of batch:%s, which is not there', t.batch_id)
    ELSE format('its events do not tell how batch:%s became %s', b.id, b.status) END
  FROM due b FULL JOIN told t ON t.batch_id = b.id
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
  -- The last movement of each sort was told of when it was made.
  SELECT 'events_tell_every_change', m.merchant_id, format('no event tells what last moved of batch:%s (%s)',
    m.batch_id, m.what)
  FROM (
    SELECT min(m.merchant_id) AS merchant_id, b.id AS batch_id, w.what, max(m.created_at) AS at
    FROM batch b JOIN (
      SELECT m.*, batch_of(m.cause) AS batch_id FROM movement m WHERE m.cause = ANY (causes)
        AND m.cause LIKE 'batch:%'
      UNION ALL SELECT m.*, r.batch_id FROM movement m JOIN batch_recipient r ON r.id = recipient_of(m.cause)
      WHERE m.cause = ANY (causes) AND m.cause LIKE 'recipient:%' AND r.id = ANY (recipients)
    ) m ON m.batch_id = b.id
    CROSS JOIN LATERAL (SELECT CASE WHEN m.step = 'reserve' THEN 'begun' WHEN m.step = 'reverse' THEN m.cause
      WHEN b.processed_at = m.created_at THEN 'ended' ELSE 'moved' END AS what) w
    WHERE b.id = ANY (ids) GROUP BY b.id, w.what
  ) m LEFT JOIN (
    SELECT batch_of(event_cause(e.data)) AS batch_id, w.what, max(e.created_at) AS at
    FROM event e CROSS JOIN LATERAL (VALUES
      (CASE WHEN e.type IN ('batch_processing', 'batch_pending_approval') THEN 'begun' END),
      (CASE WHEN e.type IN ('bulk_pay_done', 'batch_cancelled') THEN 'ended' END),
      (CASE WHEN e.type IN ('bulk_pay_done', 'batch_cancelled', 'batch_progress') THEN 'moved' END),
      (CASE WHEN e.type = 'recipient_reversed' THEN 'recipient:' || (e.data->>'recipient_id') END)
    ) AS w (what)
    WHERE event_cause(e.data) = ANY (causes) AND w.what IS NOT NULL GROUP BY 1, 2
  ) t ON t.batch_id = m.batch_id AND t.what = m.what
  WHERE t.at IS NULL OR t.at < m.at;

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
        -- Not decided: then somebody will ask.
        WHEN 'processing' THEN r.state IN ('sending', 'unsent', 'accepted', 'doubt')
          AND r.next_check_at IS NOT NULL
        ELSE false END) IS NOT TRUE END;

  -- Of what people approve nothing changes; the bounds of the table see to it that they did.
  RETURN QUERY
  SELECT 'approvals_cover_what_is_paid', b.merchant_id, format('batch:%s is not what was to be approved',
    b.id)
  FROM batch b
  WHERE b.approval_digest IS NOT NULL AND b.id = ANY (ids) AND b.approval_digest IS DISTINCT
    FROM batch_digest(b);
END $$;

REVOKE EXECUTE ON FUNCTION audit_batches FROM PUBLIC;
