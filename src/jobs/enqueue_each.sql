-- Enqueues a job of this task for each value, in the caller's transaction, where no job of it waits for its
-- turn already: one that runs may have looked before. One that failed waits no longer. The job finds its
-- value under `name` in its payload. @returns how many were enqueued
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
    -- In one order, so that two that enqueue at once wait for each other at most.
    ORDER BY one);
BEGIN
  IF cardinality(specs) > 0 THEN PERFORM graphile_worker.add_jobs(specs); END IF;
  RETURN cardinality(specs);
END $$;

REVOKE EXECUTE ON FUNCTION enqueue_each FROM PUBLIC;
