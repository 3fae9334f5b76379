-- Forgets the addresses of attempts that hold no place any more.
CREATE OR REPLACE FUNCTION sweep_link_places() RETURNS void LANGUAGE sql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  DELETE FROM link_place WHERE created_at <= service_now() - link_place_time()
$$;

REVOKE EXECUTE ON FUNCTION sweep_link_places FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sweep_link_places TO payments_service;
