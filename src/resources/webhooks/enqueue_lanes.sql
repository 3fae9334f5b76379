-- Enqueues the lanes of these endpoints, in the caller's transaction, where no job waits for its turn
-- already.
CREATE OR REPLACE FUNCTION enqueue_lanes(endpoints int[]) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  specs graphile_worker.job_spec[] := ARRAY(
    SELECT ROW ('webhooks.deliver', json_build_object('endpointId', e), NULL, NULL, NULL, 'webhooks.deliver:'
      || e, NULL, NULL)
      ::graphile_worker.job_spec
    FROM unnest(endpoints) AS e
    WHERE NOT EXISTS (
      SELECT FROM graphile_worker._private_jobs j
      WHERE j.key = 'webhooks.deliver:' || e AND j.is_available AND j.run_at <= now())
    -- In one order, so that two that enqueue at once wait for each other at most.
    ORDER BY e);
BEGIN
  IF cardinality(specs) > 0 THEN PERFORM graphile_worker.add_jobs(specs); END IF;
  RETURN cardinality(specs);
END $$;

REVOKE EXECUTE ON FUNCTION enqueue_lanes FROM PUBLIC;
