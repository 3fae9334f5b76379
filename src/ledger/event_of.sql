-- Returns the type of the event that reports that a collection reached a status.
CREATE OR REPLACE FUNCTION event_of(status text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE status WHEN 'success' THEN 'payment_received' ELSE 'payment_' || status END
$$;
