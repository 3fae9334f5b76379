-- Deletes the address hashes of attempts that no longer hold a slot.
CREATE OR REPLACE FUNCTION sweep_link_slots() RETURNS void LANGUAGE sql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  DELETE FROM link_slot WHERE created_at <= service_now() - link_slot_time()
$$;

REVOKE EXECUTE ON FUNCTION sweep_link_slots FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sweep_link_slots TO payments_service;
