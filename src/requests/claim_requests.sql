-- Claims requests that the service will ask an operator about, and returns each with its subject. Without
-- `only_transaction`, these are the `take` requests of one operator that are due for longest. With
-- `only_transaction`, it is the request of that transaction, due or not, unless the service will not ask
-- about it again. For `pause_ms` no other caller can claim a claimed request. If the caller dies, the request
-- is due again after `fence_ms`.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION claim_requests(
  only_provider provider,
  only_transaction bigint,
  take int,
  pause_ms bigint,
  fence_ms bigint
) RETURNS TABLE (
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
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  due_again timestamptz := service_now() + fence_ms * interval '1 millisecond';
  taken bigint[];
BEGIN
  IF only_transaction IS NULL THEN
    taken := take_due(only_provider, take, due_again);
  ELSE
    taken := ARRAY(
      SELECT r.id FROM operator_request r
      WHERE r.transaction_id = only_transaction AND r.next_check_at IS NOT NULL
        AND (r.query_after IS NULL OR r.query_after <= now())
      FOR NO KEY UPDATE);
  END IF;
  IF cardinality(taken) = 0 THEN RETURN; END IF;

  UPDATE operator_request r
  SET query_after = now() + pause_ms * interval '1 millisecond', check_count = r.check_count + 1,
    next_check_at = due_again
  WHERE r.id = ANY (taken);

  RETURN QUERY SELECT * FROM claimed_requests(taken, fence_ms);
END $$;
