-- Returns the entries of timelines, oldest first: at most `take` of each payment. If a payment has more, the
-- oldest questions to its operator are left out first, then the oldest attempts of webhooks.
-- Row-level security hides the calls of operators, and keeps the origin of an event out of its index. So the
-- function has the rights of its owner and names the merchant itself, which must be the one that the session
-- is bound to. It gives no body, address or error text. Each `OFFSET 0` has its rows found by the index for
-- one payment at a time, for any statistics of the tables.
-- Entries of one millisecond have the order of their causes (`rank`), then that of their records (`nth`).
-- Because clocks differ and times are rounded, an effect may have an earlier time than its cause: then the
-- time of the cause holds.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION timeline_of(merchant int, ids bigint[], with_webhooks boolean, take int)
RETURNS TABLE (
  transaction_id bigint,
  at timestamptz,
  kind text,
  source text,
  status transaction_status,
  failure_reason text,
  status_code int,
  duration_ms int,
  event_type text,
  refund_id bigint
) LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
  IF merchant IS DISTINCT FROM nullif(current_setting('app.merchant', true), '')::int THEN
    RETURN;
  END IF;
  RETURN QUERY
  WITH payment AS MATERIALIZED (
    SELECT t.id, t.payment_link_id, t.created_at FROM transaction t
    WHERE t.id = ANY (ids) AND t.merchant_id = merchant
  ), subject AS MATERIALIZED (
    SELECT p.id, NULL::bigint AS refund_id, p.id AS event_of FROM payment p
    UNION ALL
    SELECT p.id, r.id, r.id FROM payment p CROSS JOIN LATERAL (
      SELECT t.id FROM transaction t WHERE t.refund_of_id = p.id OFFSET 0) AS r
  ), event_of AS MATERIALIZED (
    SELECT s.id, s.refund_id, e.*, shown.kind, shown.source
    FROM subject s CROSS JOIN LATERAL (
      SELECT o.position, o.type, o.data, o.created_at FROM event o
      WHERE event_origin(o.data) = 'transaction:' || s.event_of OFFSET 0) AS e
    CROSS JOIN LATERAL timeline_event(e.type, e.data, s.refund_id IS NOT NULL) AS shown
  ), request AS MATERIALIZED (
    SELECT p.id, p.created_at, r.id AS request_id FROM payment p CROSS JOIN LATERAL (
      SELECT o.id FROM operator_request o WHERE o.transaction_id = p.id OFFSET 0) AS r
  ), entry AS (
    SELECT p.id, p.created_at AS at, 'requested' AS kind,
      CASE WHEN p.payment_link_id IS NULL THEN 'merchant' ELSE 'payer' END AS source,
      NULL::transaction_status AS status, NULL AS failure_reason, NULL::int AS status_code,
      NULL::int AS duration_ms, NULL AS event_type, NULL::bigint AS refund_id, 0 AS rank, 0::bigint AS nth
    FROM payment p
    UNION ALL
    SELECT e.id, e.created_at, e.kind, e.source,
      CASE e.kind WHEN 'status_changed' THEN (e.data->>'status')::transaction_status END,
      CASE e.kind WHEN 'status_changed' THEN e.data->>'failure_reason' END,
      NULL, NULL, NULL, e.refund_id,
      CASE WHEN e.type IN ('deposit_pending', 'approval_given', 'deposit_processing') THEN 1 ELSE 6 END,
      e.position
    FROM event_of e WHERE e.kind IS NOT NULL
    UNION ALL
    SELECT r.id, greatest(call.at, r.created_at), call.kind, call.source, NULL, NULL, call.status_code,
      call.duration_ms, NULL, NULL, call.rank, x.id
    FROM request r CROSS JOIN LATERAL (
      SELECT o.id, o.operation, o.status::int AS status, o.duration_ms, o.at FROM operator_exchange o
      WHERE o.request_id = r.request_id OFFSET 0) AS x
    CROSS JOIN LATERAL (
      SELECT 'operator_questioned', 'service', x.at, x.status, x.duration_ms, 5 WHERE x.operation = 'query'
      UNION ALL
      SELECT 'operator_asked', 'service', x.at, NULL, NULL, 2
      WHERE x.operation IN ('collect', 'disburse')
      UNION ALL
      SELECT CASE WHEN x.status IS NULL THEN 'operator_did_not_answer' ELSE 'operator_answered' END,
        CASE WHEN x.status IS NULL THEN 'service' ELSE 'operator' END,
        x.at + x.duration_ms * interval '1 millisecond', x.status, x.duration_ms, 3
      WHERE x.operation IN ('collect', 'disburse')
    ) AS call (kind, source, at, status_code, duration_ms, rank)
    UNION ALL
    SELECT r.id, greatest(c.received_at, r.created_at), 'operator_called_back', 'operator', NULL, NULL, NULL,
      NULL, NULL, NULL, 4, c.id
    FROM request r CROSS JOIN LATERAL (
      SELECT o.id, o.received_at FROM operator_callback o WHERE o.request_id = r.request_id OFFSET 0) AS c
    UNION ALL
    -- A sample has no position, so that it is about no payment.
    SELECT e.id, greatest(a.at, e.created_at), 'webhook_sent', 'service', NULL, NULL, a.status_code,
      a.duration_ms, e.type, NULL, 7, d.id
    FROM event_of e CROSS JOIN LATERAL (
      SELECT w.id FROM webhook_endpoint w WHERE w.merchant_id = merchant
        AND (w.removed_at IS NULL OR w.removed_at >= e.created_at) OFFSET 0) AS w
    CROSS JOIN LATERAL (
      SELECT d.id FROM webhook_delivery d
      WHERE d.endpoint_id = w.id AND d.position = e.position OFFSET 0) AS d
    CROSS JOIN LATERAL (
      SELECT t.at, t.status_code::int AS status_code, t.duration_ms FROM webhook_attempt t
      WHERE t.delivery_id = d.id OFFSET 0) AS a
    WHERE with_webhooks AND e.refund_id IS NULL
  ), numbered AS (
    SELECT e.*, row_number() OVER (PARTITION BY e.id ORDER BY CASE e.kind WHEN 'operator_questioned' THEN 2
      WHEN 'webhook_sent' THEN 1 ELSE 0 END, e.at DESC, e.rank DESC, e.nth DESC) AS ordinal
    FROM entry e
  )
  SELECT n.id, n.at, n.kind, n.source, n.status, n.failure_reason, n.status_code, n.duration_ms,
    n.event_type, n.refund_id
  FROM numbered n WHERE n.ordinal <= take ORDER BY n.id, n.at, n.rank, n.nth;
END $$;
