-- The event that tells that a collection came into a status.
CREATE OR REPLACE FUNCTION event_of(status text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE status WHEN 'success' THEN 'payment_received' ELSE 'payment_' || status END
$$;

REVOKE EXECUTE ON FUNCTION event_of FROM PUBLIC;
