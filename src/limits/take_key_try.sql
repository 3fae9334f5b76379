-- Counts one try to sign in with an API key: a hit under its name (see `take_hit`), and a failure of the
-- account unless the account is known at the address. account: hash of the key; here: hash of the key and the
-- network address. `wait_ms` > 0: the account has all its failures, and the secret must not be checked.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION take_key_try(
  counted text,
  account text,
  here text,
  most int,
  window_ms int,
  failures_most int,
  failures_window_ms int
) RETURNS TABLE (allowed boolean, taken int, reset_ms bigint, is_known boolean, wait_ms int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  known boolean := EXISTS (SELECT FROM sign_in_address a WHERE a.account = $2 AND a.address = $3);
BEGIN
  RETURN QUERY
  SELECT h.allowed, h.taken, h.reset_ms, known, CASE WHEN h.allowed AND NOT known
    THEN count_failure('key ' || $2, failures_most, failures_window_ms) ELSE 0 END
  FROM take_hit(counted, most, window_ms) h;
END $$;
