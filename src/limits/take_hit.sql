-- Counts one hit under a name, unless `most` hits lie within the window. `hits` holds the hits of the window,
-- the oldest first. A refusal leaves the hits as they are and appends `infinity`: this is no time, but a mark
-- by which the statement knows its outcome; the next hit removes it. The count is exact, because the row of
-- the name is locked.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION take_hit(
  counted text,
  most int,
  window_ms int
) RETURNS TABLE (allowed boolean, taken int, reset_ms bigint)
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  INSERT INTO rate_limit AS kept (name, hits)
  VALUES (counted, ARRAY[date_trunc('milliseconds', clock_timestamp())])
  ON CONFLICT (name) DO UPDATE SET hits = (
    SELECT array_append(
      array_agg(hit ORDER BY hit), CASE WHEN count(*) < most THEN excluded.hits[1] ELSE 'infinity' END)
    FROM unnest(kept.hits) AS hit
    WHERE hit > excluded.hits[1] - window_ms * interval '1 millisecond' AND hit < 'infinity')
  RETURNING
    hits[cardinality(hits)] < 'infinity',
    (SELECT count(*)::int FROM unnest(hits) AS hit WHERE hit < 'infinity'),
    ceil(extract(epoch FROM hits[1] - clock_timestamp()) * 1000 + window_ms)::bigint
$$;
