-- Returns the class of a time to settle, in ms: the time rounded up to a preferred number of the series E24
-- (IEC 60063), so that a class is at most 10 % wide; 0 where `settled` is null.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION settle_class(begun timestamptz, settled timestamptz) RETURNS bigint LANGUAGE sql
  IMMUTABLE SET search_path = public, pg_temp AS $$
  SELECT CASE WHEN settled IS NULL THEN 0 ELSE (
    SELECT steps[width_bucket((ms + scale - 1) / scale - 1, steps) + 1] * scale
    FROM (SELECT greatest(extract(epoch FROM settled - begun) * 1000, 0)::bigint AS ms) AS taken,
      LATERAL (SELECT (10 ^ greatest(length(ms::text) - 2, 0))::bigint AS scale,
        '{10,11,12,13,15,16,18,20,22,24,27,30,33,36,39,43,47,51,56,62,68,75,82,91,100}'::bigint[] AS steps
      ) AS e24) END
$$;
