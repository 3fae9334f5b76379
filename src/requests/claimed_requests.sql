-- Reads requests that were claimed in this transaction, each with its subject and the times that a decision
-- needs. Each row is found by its id alone, and its merchant is compared after that: otherwise a plan that
-- was made for an empty table may read all rows of the merchant.
CREATE OR REPLACE FUNCTION claimed_requests(ids bigint[], fence_ms bigint) RETURNS TABLE (
  id bigint,
  merchant_id int,
  subject text,
  subject_id bigint,
  provider provider,
  kind operator_request_kind,
  amount bigint,
  phone text,
  handle jsonb,
  state operator_request_state,
  attempt smallint,
  claimed_at timestamptz,
  check_count int,
  age_ms double precision,
  left_ms double precision,
  since_over_ms double precision,
  since_settled_ms double precision,
  since_sent_ms double precision,
  request jsonb,
  status text,
  claimed text,
  since_notified_ms double precision,
  rejected_reason text,
  cancel_requested boolean,
  is_approved boolean
)
LANGUAGE sql STABLE AS $$
  SELECT
    r.id,
    r.merchant_id,
    CASE WHEN r.payout_id IS NOT NULL THEN 'payout' WHEN r.recipient_id IS NOT NULL THEN 'recipient'
      WHEN r.kind = 'collect' THEN 'collection' ELSE 'deposit' END,
    coalesce(r.payout_id, r.recipient_id, r.transaction_id),
    r.provider,
    r.kind,
    r.amount,
    r.phone,
    r.handle || jsonb_build_object('correlationId', r.correlation_id, 'clientRef', r.correlation_id),
    r.state,
    r.attempt,
    now(),
    r.check_count,
    whole_ms(c.now - r.created_at),
    whole_ms(t.expires_at - c.now),
    coalesce(whole_ms(c.now - coalesce(t.expires_at, s.settled_at)), 0),
    whole_ms(c.now - coalesce(s.settled_at, r.created_at)),
    whole_ms(now() - r.fence_until) + fence_ms,
    coalesce(t.request_data, p.request_data, '{}'),
    coalesce(t.status::text, p.status::text, b.status::text),
    r.handle->>'claimed',
    whole_ms(c.now - (r.handle->>'alertAt')::timestamptz),
    r.handle->>'rejectedReason',
    coalesce(b.cancel_requested, false),
    coalesce((SELECT true FROM deposit_approval a WHERE a.transaction_id = r.transaction_id LIMIT 1), false)
  FROM (SELECT service_now() AS now OFFSET 0) c CROSS JOIN unnest(ids) AS i (id)
  JOIN LATERAL (SELECT r.* FROM operator_request r WHERE r.id = i.id LIMIT 1) r ON true
  LEFT JOIN LATERAL (
    SELECT t.* FROM transaction t WHERE t.id = r.transaction_id LIMIT 1
  ) t ON t.merchant_id = r.merchant_id
  LEFT JOIN LATERAL (
    SELECT p.* FROM payout p WHERE p.id = r.payout_id LIMIT 1
  ) p ON p.merchant_id = r.merchant_id
  LEFT JOIN LATERAL (
    SELECT b.*, g.cancel_requested_at IS NOT NULL AS cancel_requested
    FROM batch_recipient b JOIN batch g ON g.id = b.batch_id
    WHERE b.id = r.recipient_id LIMIT 1
  ) b ON b.merchant_id = r.merchant_id
  CROSS JOIN LATERAL (SELECT coalesce(t.settled_at, p.settled_at, b.settled_at) AS settled_at) s
$$;
