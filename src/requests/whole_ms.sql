-- A span of time in whole milliseconds; of days or months it counts none but those of 24 hours.
CREATE OR REPLACE FUNCTION whole_ms(span interval) RETURNS double precision
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT round(extract(epoch FROM span) * 1000)::float8
$$;

REVOKE EXECUTE ON FUNCTION whole_ms FROM PUBLIC;
