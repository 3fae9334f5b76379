-- Looks at `take` rows of `operator_exchange` above `after_id`, in the order of their ids, and deletes those
-- that are older than `kept_days`, unless their request is open. @returns the id to continue after; null if
-- all these rows are younger, or if there are fewer than `take`
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION sweep_exchanges(kept_days int, after_id bigint, take int) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  looked bigint[] := ARRAY(
    SELECT e.id FROM operator_exchange e WHERE e.id > after_id ORDER BY e.id LIMIT take);
  old bigint[] := ARRAY(
    SELECT e.id FROM operator_exchange e
    WHERE e.id = ANY (looked) AND e.at < now() - kept_days * interval '1 day');
BEGIN
  DELETE FROM operator_exchange e WHERE e.id = ANY (ARRAY(
    SELECT o.id FROM operator_exchange o
    WHERE o.id = ANY (old) AND NOT is_request_open(o.request_id) ORDER BY o.id FOR UPDATE SKIP LOCKED));
  RETURN CASE WHEN old <> '{}' THEN looked[take] END;
END $$;
