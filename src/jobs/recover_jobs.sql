-- Unlocks the jobs of dead engines, so that living engines run them. Each engine holds the session lock
-- (72707375, hash of its id) while it is alive; a new engine has one second to take it. Also deletes jobs
-- that have used all their attempts: rows of the service store the work that is left. @returns how many dead
-- engines had jobs
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION recover_jobs() RETURNS int
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
