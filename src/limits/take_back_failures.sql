-- Takes one failure back from each of these names. Names in `waiting` wait no longer; the windows of the
-- others go on. The row of `forgiven`, if given, is deleted. The rows are locked in the order of their names,
-- as in `take_sign_in_try`, because two callers with different orders would deadlock.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION take_back_failures(names text[], waiting text[], forgiven text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE sign_in_wait AS kept SET failures = greatest(kept.failures - 1, 0),
    until = CASE WHEN kept.name = ANY (waiting) THEN clock_timestamp() ELSE kept.until END
  FROM (SELECT w.name FROM sign_in_wait w WHERE w.name = ANY (names) ORDER BY w.name FOR UPDATE) AS locked
  WHERE kept.name = locked.name;
  DELETE FROM sign_in_wait WHERE name = forgiven
$$;
