-- Returns when the service asks again about a request that ended at `at`; null: never again. If a callback
-- made the request due meanwhile and claims another outcome, the request stays due. A paid request is asked
-- about again because an operator may take money back, and some operators report that only when they are
-- asked. The planner inlines this function into the calling statement.
CREATE OR REPLACE FUNCTION check_after_end(
  is_paid boolean,
  due timestamptz,
  claimed text,
  at timestamptz,
  watch_ms bigint
) RETURNS timestamptz
  LANGUAGE sql VOLATILE AS $$
  SELECT CASE
    WHEN due <= at + (clock_timestamp() - now())
      AND claimed <> CASE WHEN is_paid THEN 'settled' ELSE 'refused' END THEN due
    WHEN is_paid THEN at + watch_ms * interval '1 millisecond' END
$$;
