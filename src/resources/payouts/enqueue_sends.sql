-- Enqueues the sending of payouts of these operators, in the caller's transaction, where no job waits for its
-- turn already: one that runs may have looked before. One that failed waits no longer. @returns how many were
-- enqueued
CREATE OR REPLACE FUNCTION enqueue_sends(operators provider[]) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  specs graphile_worker.job_spec[] := ARRAY(
    SELECT ROW ('payouts.send', json_build_object('provider', o), NULL, NULL, NULL, 'payouts.send:' || o,
      NULL, NULL)
      ::graphile_worker.job_spec
    FROM unnest(operators) AS o
    WHERE NOT EXISTS (
      SELECT FROM graphile_worker._private_jobs j
      WHERE j.key = 'payouts.send:' || o AND j.is_available AND j.run_at <= now())
    -- In one order, so that two that enqueue at once wait for each other at most.
    ORDER BY o);
BEGIN
  IF cardinality(specs) > 0 THEN PERFORM graphile_worker.add_jobs(specs); END IF;
  RETURN cardinality(specs);
END $$;

REVOKE EXECUTE ON FUNCTION enqueue_sends FROM PUBLIC;
