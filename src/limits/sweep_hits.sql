-- Deletes at most `most` names without a hit in the longest window, and skips rows that another transaction
-- has locked. @returns how many were deleted
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION sweep_hits(most int, window_ms int) RETURNS int
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH gone AS (
    DELETE FROM rate_limit WHERE name IN (
      SELECT name FROM rate_limit
      WHERE NOT EXISTS (
        SELECT FROM unnest(hits) AS hit
        WHERE hit > clock_timestamp() - window_ms * interval '1 millisecond' AND hit < 'infinity')
      LIMIT most
      FOR UPDATE SKIP LOCKED)
    RETURNING 1
  ) SELECT count(*)::int FROM gone
$$;
