-- Enqueues the payouts and the batches whose time has come.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION enqueue_due() RETURNS void LANGUAGE plpgsql
  SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM enqueue_due_payouts(), enqueue_due_batches();
END $$;
