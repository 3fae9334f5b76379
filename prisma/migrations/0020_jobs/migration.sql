-- The job engine (graphile-worker, whose own tables `migrate` makes before this one): who may use it, how the jobs of a
-- process that is gone are taken back, and who enqueues what.

-- Its tables have row-level security without a policy: nobody but their owner sees a row.
GRANT USAGE ON SCHEMA graphile_worker TO payments_service;
GRANT SELECT ON graphile_worker.migrations TO payments_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON graphile_worker._private_jobs, graphile_worker._private_job_queues,
  graphile_worker._private_tasks, graphile_worker._private_known_crontabs TO payments_service;
CREATE POLICY service ON graphile_worker._private_jobs TO payments_service USING (true) WITH CHECK (true);
CREATE POLICY service ON graphile_worker._private_job_queues TO payments_service USING (true) WITH CHECK (true);
CREATE POLICY service ON graphile_worker._private_tasks TO payments_service USING (true) WITH CHECK (true);
CREATE POLICY service ON graphile_worker._private_known_crontabs TO payments_service USING (true) WITH CHECK (true);

-- Takes back the jobs of engines that are gone: each holds the session lock (72707375, hash of its id) while it lives, and
-- a moment passes before a new one has it. What is used up and nobody runs goes: what is left to do stands in our rows.
-- @returns how many engines were gone
CREATE FUNCTION recover_jobs() RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  gone text[] := ARRAY(
    SELECT DISTINCT j.locked_by FROM graphile_worker._private_jobs j
    WHERE j.locked_at < now() - interval '1 second' AND NOT EXISTS (
      SELECT FROM pg_locks l
      WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 72707375 AND l.objsubid = 2
        AND l.objid = (hashtext(j.locked_by)::bigint & 4294967295)::oid
        AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())));
BEGIN
  IF gone <> '{}' THEN
    PERFORM graphile_worker.force_unlock_workers(gone);
    PERFORM pg_notify('jobs:insert', '{"count":1}');
  END IF;
  DELETE FROM graphile_worker._private_jobs j WHERE j.locked_at IS NULL AND NOT j.is_available;
  RETURN cardinality(gone);
END $$;

-- Enqueues the sending of payouts of these operators, in the caller's transaction, where no job waits for its turn already:
-- one that runs may have looked before. One that failed waits no longer. @returns how many were enqueued
CREATE FUNCTION enqueue_sends(operators provider[]) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  specs graphile_worker.job_spec[] := ARRAY(
    SELECT ROW ('payouts.send', json_build_object('provider', o), NULL, NULL, NULL, 'payouts.send:' || o, NULL, NULL)
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

-- A payout that goes at once is enqueued in the transaction that makes it.
CREATE FUNCTION enqueue_made() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM enqueue_sends(ARRAY(
    SELECT DISTINCT m.payment_method FROM made m WHERE m.scheduled_at IS NULL AND m.approval = 'not_required'));
  RETURN NULL;
END $$;
CREATE TRIGGER enqueue AFTER INSERT ON payout REFERENCING NEW TABLE AS made
FOR EACH STATEMENT EXECUTE FUNCTION enqueue_made();

-- Enqueues the sending of what is due and may begin (`begin_payouts`): what was scheduled, approved, or held up.
CREATE FUNCTION enqueue_due_payouts() RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  at timestamptz := service_now();
BEGIN
  IF EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) THEN RETURN 0; END IF;
  RETURN enqueue_sends(ARRAY(
    SELECT o FROM unnest(enum_range(NULL::provider)) AS o
    WHERE EXISTS (
      SELECT FROM payout p JOIN LATERAL (
        SELECT FROM merchant m WHERE m.id = p.merchant_id AND m.status = 'active' LIMIT 1) AS active ON true
      WHERE p.payment_method = o AND p.status = 'pending' AND p.approval IN ('not_required', 'approved')
        AND p.send_at <= at)));
END $$;

REVOKE EXECUTE ON FUNCTION recover_jobs, enqueue_sends, enqueue_made, enqueue_due_payouts FROM PUBLIC;
GRANT EXECUTE ON FUNCTION recover_jobs, enqueue_due_payouts TO payments_service;
