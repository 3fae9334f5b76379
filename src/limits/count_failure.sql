-- Counts one failure for this name. If `most` failures are counted in the window already, counts nothing. The
-- window begins with the first failure.
-- @returns 0 if it was counted, otherwise the ms until the window ends
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION count_failure(counted text, most int, window_ms int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO sign_in_wait AS kept (name, failures, until)
  VALUES (counted, 1, clock_timestamp() + window_ms * interval '1 millisecond')
  ON CONFLICT (name) DO UPDATE SET (failures, until) = (
    SELECT CASE WHEN is_over THEN 1 ELSE kept.failures + 1 END,
      CASE WHEN is_over THEN excluded.until ELSE kept.until END
    FROM (SELECT kept.until <= clock_timestamp() AS is_over) AS was)
  WHERE kept.until <= clock_timestamp() OR kept.failures < most;
  IF FOUND THEN RETURN 0; END IF;
  RETURN coalesce((
    SELECT greatest(1, ceil(extract(epoch FROM w.until - clock_timestamp()) * 1000))::int
    FROM sign_in_wait w WHERE w.name = counted), 1);
END $$;
