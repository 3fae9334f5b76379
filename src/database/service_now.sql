-- Returns the service's time: the machine's time, plus the offset of the sandbox clock if there is one.
CREATE OR REPLACE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT now() + coalesce((SELECT offset_ms FROM sandbox_clock), 0) * interval '1 millisecond'
$$;

REVOKE EXECUTE ON FUNCTION service_now FROM PUBLIC;
GRANT EXECUTE ON FUNCTION service_now TO payments_merchant;
GRANT EXECUTE ON FUNCTION service_now TO payments_service;
