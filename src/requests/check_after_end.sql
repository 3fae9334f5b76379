-- When a request that ended at `at` is asked about again; null asks no more. A callback that came meanwhile
-- and claims something else than was answered has its own question. What was paid may be taken back: some
-- operators tell that only when they are asked. The planner makes it a part of the statement that asks.
CREATE OR REPLACE FUNCTION check_after_end(
  is_paid boolean, due timestamptz, claimed text, at timestamptz, watch_ms bigint
) RETURNS timestamptz
  LANGUAGE sql VOLATILE AS $$
  SELECT CASE
    WHEN due <= at + (clock_timestamp() - now())
      AND claimed <> CASE WHEN is_paid THEN 'settled' ELSE 'refused' END THEN due
    WHEN is_paid THEN at + watch_ms * interval '1 millisecond' END
$$;

REVOKE EXECUTE ON FUNCTION check_after_end FROM PUBLIC;
