-- Returns a time span in whole milliseconds. A day counts 24 hours; callers pass no months.
CREATE OR REPLACE FUNCTION whole_ms(span interval) RETURNS double precision
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT round(extract(epoch FROM span) * 1000)::float8
$$;
