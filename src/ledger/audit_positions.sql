-- Proves that the positions of the next `most` events have no gap, except gaps that a restore made. It begins
-- after one position of a merchant, goes on with the next merchants, and reads only the index of the events.
-- Returns the last merchant (null at the end) and position that it read, and the problems.
CREATE OR REPLACE FUNCTION audit_positions(
  from_merchant int,
  from_position bigint,
  most int,
  OUT to_merchant int,
  OUT to_position bigint,
  OUT merchants int[],
  OUT problems text[]
) LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  read int;
BEGIN
  SELECT count(*), (array_agg(p.merchant_id ORDER BY p.merchant_id DESC, p.position DESC))[1],
    (array_agg(p.position ORDER BY p.merchant_id DESC, p.position DESC))[1]
  INTO read, to_merchant, to_position FROM (
    SELECT e.merchant_id, e.position FROM event e
    WHERE (e.merchant_id, e.position) > (from_merchant, from_position)
    ORDER BY e.merchant_id, e.position LIMIT most) p;
  IF read < most THEN to_merchant := NULL; END IF;
  SELECT coalesce(array_agg(f.merchant_id), '{}'), coalesce(array_agg(f.problem), '{}') INTO merchants,
    problems FROM (
    SELECT p.merchant_id, format('position %s does not follow %s', p.position, p.before) AS problem FROM (
      SELECT p.merchant_id, p.position, lag(p.position, 1, CASE WHEN p.merchant_id = from_merchant
        THEN from_position ELSE 0 END)
        OVER (PARTITION BY p.merchant_id ORDER BY p.position) AS before
      FROM (
        SELECT e.merchant_id, e.position FROM event e
        WHERE (e.merchant_id, e.position) > (from_merchant, from_position)
    ORDER BY e.merchant_id, e.position LIMIT most) p
    ) p WHERE p.position <> p.before + 1 AND NOT EXISTS (
      SELECT FROM event_gap g
      WHERE g.merchant_id = p.merchant_id AND g.after_position = p.before
        AND g.last_position = p.position - 1)
    UNION ALL
    SELECT h.merchant_id, format('positions end at %s, and the last event has %s', h.position,
      coalesce(last.position, 0))
    FROM event_log_position h LEFT JOIN LATERAL (
      SELECT max(e.position) AS position FROM event e WHERE e.merchant_id = h.merchant_id
    ) last ON true
    WHERE h.merchant_id >= from_merchant AND (to_merchant IS NULL OR h.merchant_id < to_merchant)
      AND h.position IS DISTINCT FROM coalesce(last.position, 0)
  ) f;
END $$;
