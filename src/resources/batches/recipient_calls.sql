-- The calls for recipients that may be under way, but those of `own`: a call ends within `call_ms` of its
-- being sent, also one of a process that is gone, for its operator goes on with it.
CREATE OR REPLACE FUNCTION recipient_calls(fence_ms bigint, call_ms bigint, own bigint[])
RETURNS TABLE (batch_id int, operator provider) LANGUAGE sql STABLE AS $$
  SELECT r.batch_id, q.provider
  FROM operator_request q JOIN batch_recipient r ON r.id = q.recipient_id
  WHERE q.state = 'sending' AND q.recipient_id IS NOT NULL
    AND q.fence_until > now() + (fence_ms - call_ms) * interval '1 millisecond' AND q.id <> ALL (own)
$$;

REVOKE EXECUTE ON FUNCTION recipient_calls FROM PUBLIC;
