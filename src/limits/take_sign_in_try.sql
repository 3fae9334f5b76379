-- Counts one try to sign in as a failure until it succeeds, or returns how long the caller must wait (wait_ms
-- > 0; then nothing is counted). account: hash of the e-mail address; here: hash of the e-mail address and
-- the network address; block: the block of network addresses (`addressBlock`). The rows are locked in the
-- order of their names, so that two tries never deadlock. `until` of the rows `here` and `address` is the
-- time of the next try, of `account` the end of its window.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION take_sign_in_try(
  account text,
  here text,
  block text,
  longest_ms int,
  forget_ms int,
  address_free int,
  account_most int,
  window_ms int
) RETURNS TABLE (is_known boolean, failures_here int, failures_everywhere int, wait_ms int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  known boolean := EXISTS (SELECT FROM sign_in_address a WHERE a.account = $1 AND a.address = $2);
  names text[] := ARRAY['here ' || $2, 'address ' || $3, 'account ' || $1];
  at timestamptz;
  waits_ms float8;
  here_now int;
  everywhere_now int;
BEGIN
  INSERT INTO sign_in_wait AS w (name, failures, until)
  SELECT n, 0, to_timestamp(0) FROM unnest(names) n ORDER BY n
  ON CONFLICT (name) DO UPDATE SET failures = w.failures;
  at := clock_timestamp();
  waits_ms := (
    SELECT max(extract(epoch FROM w.until - at) * 1000) FROM sign_in_wait w
    WHERE w.until > at AND (w.name = names[1] OR NOT known AND (w.name = names[2] OR w.name = names[3]
      AND w.failures >= account_most)));
  IF waits_ms > 0 THEN
    RETURN QUERY SELECT known, 0, 0, ceil(waits_ms)::int;
    RETURN;
  END IF;
  -- The n-th failure that is not free makes the next try wait 2^(n-1) seconds, at most `longest_ms`.
  UPDATE sign_in_wait w SET failures = next.n,
    until = at + interval '1 millisecond'
      * CASE WHEN next.n > next.free THEN least(longest_ms,
        1000 * power(2, least(next.n - next.free - 1, 20))) ELSE 0 END
  FROM (
    SELECT c.name, c.free, CASE WHEN k.until < at - forget_ms * interval '1 millisecond' THEN 1
      ELSE k.failures + 1 END AS n
    FROM (VALUES (names[1], 0), (names[2], address_free)) AS c (name, free) JOIN sign_in_wait k
      ON k.name = c.name) AS next
  WHERE w.name = next.name AND (w.name = names[1] OR NOT known);
  UPDATE sign_in_wait w SET
    failures = CASE WHEN w.until <= at THEN 1 ELSE w.failures + 1 END,
    until = CASE WHEN w.until <= at THEN at + window_ms * interval '1 millisecond' ELSE w.until END
  WHERE w.name = names[3] RETURNING w.failures INTO everywhere_now;
  SELECT w.failures INTO here_now FROM sign_in_wait w WHERE w.name = names[1];
  RETURN QUERY SELECT known, here_now, everywhere_now, 0;
END $$;
