-- Returns the pieces of which the periods of `unit` in `zone` are made: days in UTC that lie whole in one
-- period (`hours` 24), and single hours (`hours` 1). The first period holds `since`, the last one the moment
-- before `until`. Where `since_day` or `until_day` is true, the argument is midnight in UTC, and means
-- midnight in `zone`. A period begins at the first moment whose local time has come to its start: where
-- summer time changes, midnight may be left out or happen twice.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION stats_pieces(
  since timestamptz,
  until timestamptz,
  since_day boolean,
  until_day boolean,
  unit text,
  zone text
) RETURNS TABLE (hours int, start timestamptz, period timestamptz, stop timestamptz) LANGUAGE sql STABLE
  SET search_path = public, pg_temp AS $$
  WITH asked AS (
    SELECT CASE unit WHEN 'hour' THEN 'day' ELSE unit END AS turn,
      CASE WHEN since_day THEN since AT TIME ZONE 'UTC' ELSE since AT TIME ZONE zone END AS first,
      CASE WHEN until_day THEN until AT TIME ZONE 'UTC' - interval '1 microsecond'
        ELSE (until - interval '1 microsecond') AT TIME ZONE zone END AS last
  ), wall AS (
    SELECT w, w AT TIME ZONE zone AS at
    FROM asked a, generate_series(date_trunc(a.turn, a.first),
      date_trunc(a.turn, a.last) + ('1 ' || a.turn)::interval, ('1 ' || a.turn)::interval) AS w
  ), begun AS (
    SELECT w, at - CASE WHEN (at - interval '1 hour') AT TIME ZONE zone >= w THEN interval '1 hour'
      ELSE interval '0' END AS start
    FROM wall
  ), turn AS (
    SELECT b.start, lead(b.start) OVER (ORDER BY b.w) AS stop FROM begun b
  ), period AS MATERIALIZED (
    SELECT p.*, date_trunc('day', p.stop, 'UTC') AS last_day,
      date_trunc('day', p.start + interval '24 hours' - interval '1 microsecond', 'UTC') AS first_day
    FROM (
      SELECT t.start, t.stop FROM turn t WHERE unit <> 'hour' AND t.stop > t.start
      UNION ALL
      SELECT h, h + interval '1 hour'
      FROM turn t, generate_series(t.start, t.stop - interval '1 hour', interval '1 hour') AS h
      WHERE unit = 'hour' AND (since_day OR h + interval '1 hour' > since) AND (until_day OR h < until)
    ) AS p
  )
  SELECT 24, d, p.start, p.stop
  FROM period p, generate_series(p.first_day, p.stop - interval '24 hours', interval '24 hours') AS d
  UNION ALL
  SELECT 1, h, p.start, p.stop
  FROM period p, generate_series(p.start, least(p.first_day, p.stop) - interval '1 hour',
    interval '1 hour') AS h
  UNION ALL
  SELECT 1, h, p.start, p.stop
  FROM period p, generate_series(greatest(p.last_day, p.first_day), p.stop - interval '1 hour',
    interval '1 hour') AS h
$$;
