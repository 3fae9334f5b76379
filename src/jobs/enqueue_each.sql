-- Enqueues a job of this task for each value, in the caller's transaction, unless such a job waits already. A
-- running job does not count, because it may have looked for work before; a failed job does not count either.
-- The job finds its value under `name` in its payload. @returns how many were enqueued
CREATE OR REPLACE FUNCTION enqueue_each(task text, name text, these anyarray) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  specs graphile_worker.job_spec[] := ARRAY(
    SELECT ROW (task, json_build_object(name, one), NULL, NULL, NULL, task || ':' || one, NULL, NULL)
      ::graphile_worker.job_spec
    FROM unnest(these) AS one
    WHERE NOT EXISTS (
      SELECT FROM graphile_worker._private_jobs j
      WHERE j.key = task || ':' || one AND j.is_available AND j.run_at <= now())
    -- One order for all callers, so that two callers that enqueue at once cannot deadlock.
    ORDER BY one);
BEGIN
  IF cardinality(specs) > 0 THEN PERFORM graphile_worker.add_jobs(specs); END IF;
  RETURN cardinality(specs);
END $$;
