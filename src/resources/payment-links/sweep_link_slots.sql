-- Deletes the address hashes of attempts that links no longer remember, at most `most`. @returns how many
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION sweep_link_slots(most int) RETURNS int LANGUAGE sql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  WITH gone AS (
    DELETE FROM link_slot WHERE transaction_id IN (
      SELECT transaction_id FROM link_slot WHERE created_at <= service_now() - link_memory_time()
      LIMIT most FOR UPDATE SKIP LOCKED)
    RETURNING 1
  ) SELECT count(*)::int FROM gone
$$;
