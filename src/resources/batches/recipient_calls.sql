-- Returns the calls for recipients that may be running, without the requests in `own`. A call counts as
-- running for `call_ms` after it was sent, even if its process has ended, because the operator continues with
-- it. Because sorting is off, only the index of calls under way gives the order: no plan then reads the
-- requests of all recipients.
CREATE OR REPLACE FUNCTION recipient_calls(fence_ms bigint, call_ms bigint, own bigint[])
RETURNS TABLE (batch_id int, operator provider) LANGUAGE sql STABLE SET enable_sort = off AS $$
  SELECT r.batch_id, q.provider
  FROM (
    SELECT q.recipient_id, q.provider FROM recipient_call q
    WHERE q.fence_until > now() + (fence_ms - call_ms) * interval '1 millisecond'
      AND q.request_id <> ALL (own)
    ORDER BY q.fence_until OFFSET 0
  ) q
  JOIN LATERAL (SELECT r.batch_id FROM batch_recipient r WHERE r.id = q.recipient_id LIMIT 1) r ON true
$$;
