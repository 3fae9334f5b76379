-- Enqueues the one job that sends the recipients of all batches (`resources/batches/send.ts`), unless it is
-- already waiting to run.
CREATE OR REPLACE FUNCTION enqueue_batches() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM graphile_worker._private_jobs j WHERE j.key = 'batches.send' AND j.is_available
      AND j.run_at <= now()
  ) THEN PERFORM graphile_worker.add_job('batches.send', '{}', job_key => 'batches.send'); END IF;
END $$;
