-- Makes these requests due, in any state, because their operators have executed them. Requests in `sending`,
-- `unsent` or `doubt` become `accepted`.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION make_requests_due(request_ids bigint[]) RETURNS void LANGUAGE sql
  SET search_path = public, pg_temp AS $$
  WITH mine AS MATERIALIZED (
    SELECT r.id FROM operator_request r WHERE r.id = ANY (request_ids) ORDER BY r.id FOR NO KEY UPDATE
  )
  UPDATE operator_request r
  SET state = CASE WHEN r.state IN ('sending', 'unsent', 'doubt') THEN 'accepted' ELSE r.state END,
    accepted_at = coalesce(r.accepted_at, service_now()), next_check_at = service_now(), query_after = NULL
  FROM mine WHERE r.id = mine.id
$$;
