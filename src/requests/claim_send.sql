-- Gives one caller the right to send a request once more, and only after the time in which an earlier send
-- may still arrive (the fence). Without this right, two nodes that both learn "no record" would both send.
-- While payments out are halted, no disbursement is sent; while a batch has enough calls under way, no
-- further request of that batch is sent. A request that matches an orphan of the operator (`operator_orphan`)
-- is neither sent nor ended: it becomes `accepted`, so that the service only asks about it. `known_attempt`
-- is the last attempt that the caller knows, and `known_at` the time at which the caller read the request.
-- With `gives_up` the caller takes the right in order to end the request unsent. That is allowed while
-- payments out are halted, but not for a disbursement while a restore waits to be accepted, because the
-- disbursement may have been sent after the backup. Returns the number of this attempt; null if another
-- caller has the right, or if no caller may send now.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION claim_send(
  of_request bigint,
  known_attempt int,
  known_at timestamptz,
  gives_up boolean,
  fence_ms bigint,
  call_ms bigint,
  batch_max int
) RETURNS smallint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  sent smallint;
BEGIN
  UPDATE operator_request r
  SET state = CASE WHEN orphan.found THEN 'accepted' ELSE 'sending' END::operator_request_state,
    attempt = attempt + 1, fence_until = now() + fence_ms * interval '1 millisecond',
    accepted_at = CASE WHEN orphan.found THEN service_now() END,
    -- An earlier rejection says nothing about this send.
    handle = handle - 'rejectedReason',
    next_check_at = CASE WHEN orphan.found THEN date_trunc('milliseconds', service_now())
      ELSE next_check_at END
  FROM (SELECT EXISTS (
    SELECT FROM operator_request o JOIN operator_orphan USING (correlation_id) WHERE o.id = of_request
  ) AS found) AS orphan
  WHERE r.id = of_request AND attempt = known_attempt
    AND fence_until <= coalesce(known_at, now())
    AND state IN ('sending', 'unsent', 'doubt')
    AND (kind = 'collect' OR CASE WHEN gives_up
      THEN NOT EXISTS (SELECT FROM installation i WHERE i.restored_at IS NOT NULL)
      ELSE NOT EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) END)
    -- An approved deposit does not begin while its merchant owes money.
    AND (state <> 'unsent' OR gives_up OR NOT EXISTS (
      SELECT FROM deposit_approval a JOIN merchant_balance b ON b.merchant_id = a.merchant_id
      WHERE a.transaction_id = r.transaction_id AND b.receivable > 0))
    AND (recipient_id IS NULL OR gives_up
      OR has_capacity(r.id, recipient_id, fence_ms, call_ms, batch_max))
  RETURNING CASE WHEN state = 'sending' THEN attempt END INTO sent;
  RETURN sent;
END $$;
