-- Takes up to `take` requests of one operator that are due, those that are due for longest first: locks them,
-- and makes them due again at `until`. A due row (`request_due`) is never later than `next_check_at` of its
-- request, but may be earlier, because an update that delays a request does not change its due row. This
-- function moves an early due row to the present time of its request, and deletes it if the service asks no
-- more. It locks a request before it changes its due row; otherwise a change that makes the request due could
-- be lost. It waits for no lock: it skips a request that another session has locked. The planner may only use
-- the indexes, because a plan that was made for an empty table would read the whole table.
CREATE OR REPLACE FUNCTION take_due(of_provider provider, take int, until timestamptz) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = public, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  present timestamptz := service_now();
  taken bigint[] := '{}';
  -- The due rows that one look reads: first as many as the caller takes, then more, to pass the early ones
  -- and those that other sessions have locked.
  looks int := take;
  looks_max CONSTANT int := greatest(take, 512);
  seen int;
  due bigint[];
  early bigint[];
  times timestamptz[];
BEGIN
  LOOP
    SELECT coalesce(array_agg(i.id) FILTER (WHERE i.is_due), '{}'),
      coalesce(array_agg(i.id) FILTER (WHERE NOT i.is_due), '{}'), count(*) INTO due, early, seen
    FROM (
      SELECT d.request_id AS id, coalesce(r.next_check_at <= present, false) AS is_due
      FROM request_due d
      JOIN LATERAL (
        SELECT r.next_check_at, r.query_after FROM operator_request r WHERE r.id = d.request_id LIMIT 1
      ) r ON true
      WHERE d.provider = of_provider AND d.at <= present
        AND (coalesce(r.next_check_at > present, true) OR coalesce(r.query_after <= now(), true))
      ORDER BY d.at LIMIT looks
    ) i;

    SELECT coalesce(array_agg(l.id), '{}'), array_agg(l.next_check_at) INTO early, times
    FROM unnest(early) AS i (id) JOIN LATERAL (
      SELECT r.id, r.next_check_at FROM operator_request r
      WHERE r.id = i.id AND coalesce(r.next_check_at > present, true) LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
    ) l ON true;
    UPDATE request_due d SET at = e.at FROM unnest(early, times) AS e (id, at)
      WHERE d.request_id = e.id AND d.request_id = ANY (early) AND e.at IS NOT NULL;
    DELETE FROM request_due d WHERE d.request_id = ANY (ARRAY(
      SELECT e.id FROM unnest(early, times) AS e (id, at) WHERE e.at IS NULL));

    due := ARRAY(
      SELECT l.id FROM unnest(due) AS i (id) JOIN LATERAL (
        SELECT r.id FROM operator_request r
        WHERE r.id = i.id AND r.next_check_at <= present AND coalesce(r.query_after <= now(), true)
        LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
      ) l ON true LIMIT take - cardinality(taken));
    UPDATE request_due d SET at = until WHERE d.request_id = ANY (due);
    taken := taken || due;

    EXIT WHEN seen < looks OR cardinality(taken) = take
      OR (looks = looks_max AND cardinality(due || early) = 0);
    looks := least(looks * 4, looks_max);
  END LOOP;
  RETURN taken;
END $$;
