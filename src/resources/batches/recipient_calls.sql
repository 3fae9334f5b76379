-- Returns the calls for recipients that may be running, without the requests in `own`. A call counts as
-- running for `call_ms` after it was sent, even if its process has ended, because the operator continues with
-- it.
CREATE OR REPLACE FUNCTION recipient_calls(fence_ms bigint, call_ms bigint, own bigint[])
RETURNS TABLE (batch_id int, operator provider) LANGUAGE sql STABLE AS $$
  SELECT r.batch_id, q.provider
  FROM operator_request q JOIN batch_recipient r ON r.id = q.recipient_id
  WHERE q.state = 'sending' AND q.recipient_id IS NOT NULL
    AND q.fence_until > now() + (fence_ms - call_ms) * interval '1 millisecond' AND q.id <> ALL (own)
$$;

REVOKE EXECUTE ON FUNCTION recipient_calls FROM PUBLIC;
