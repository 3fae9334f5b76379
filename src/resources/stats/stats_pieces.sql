-- Returns the pieces of which the periods of `unit` in `zone` are made: days in UTC that lie whole in one
-- period (`hours` 24), and the single hours of all other days (`hours` 1). The first period holds `since`,
-- the last one the moment before `until`.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION stats_pieces(since timestamptz, until timestamptz, unit text, zone text)
RETURNS TABLE (hours int, start timestamptz, period timestamptz) LANGUAGE sql STABLE
  SET search_path = public, pg_temp AS $$
  WITH span AS MATERIALIZED (
    SELECT date_trunc(unit, since, zone) AS since,
      date_add(date_trunc(unit, until - interval '1 microsecond', zone), ('1 ' || unit)::interval, zone)
        AS until
  ), day AS MATERIALIZED (
    SELECT d AS start, date_trunc(unit, d, zone) AS period, d >= span.since
      AND d + interval '24 hours' <= span.until
      AND date_trunc(unit, d, zone) = date_trunc(unit, d + interval '23 hours', zone) AS is_whole
    FROM span, generate_series(date_trunc('day', span.since, 'UTC'), span.until - interval '1 microsecond',
      interval '24 hours') AS d
  )
  SELECT 24, d.start, d.period FROM day d WHERE d.is_whole
  UNION ALL
  SELECT 1, h, date_trunc(unit, h, zone)
  FROM span, day d, generate_series(d.start, d.start + interval '23 hours', interval '1 hour') AS h
  WHERE NOT d.is_whole AND h >= span.since AND h < span.until
$$;
