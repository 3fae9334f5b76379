-- Returns the service's time: the machine's time, plus the offset of the sandbox clock if there is one.
-- Granted to payments_service and payments_merchant.
CREATE OR REPLACE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT now() + coalesce((SELECT offset_ms FROM sandbox_clock), 0) * interval '1 millisecond'
$$;
