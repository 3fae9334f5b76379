-- Counts an amount against the daily limit of a key, and also against the token's limit if that is lower or
-- the key has none. The day is a UTC day. If too little is left, it raises an error, which undoes the whole
-- statement. Callers create deposits and payouts before they call this function, so that a repeated reference
-- is refused as a duplicate. No caller waits for another here, because each has locked the balance of the
-- merchant, to whom all rows of the key belong. @returns the least amount that is left
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION take_daily_limit(caller daily_limit, asked bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  today date := ((service_now() + (clock_timestamp() - now())) AT TIME ZONE 'UTC')::date;
  daily_limit record;
  used bigint;
  least_left bigint;
BEGIN
  FOR daily_limit IN
    SELECT k.merchant_id, a.whose, a.maximum
    FROM api_key k CROSS JOIN LATERAL (VALUES
      ('key', k.max_per_day),
      (caller.token_id::text, CASE WHEN k.max_per_day IS NULL OR caller.max_per_day < k.max_per_day
        THEN caller.max_per_day END)
    ) AS a (whose, maximum)
    WHERE k.id = caller.api_key_id AND a.maximum IS NOT NULL
  LOOP
    INSERT INTO key_spending AS s (merchant_id, api_key_id, day, whose, maximum, amount)
    SELECT daily_limit.merchant_id, caller.api_key_id, today, daily_limit.whose, daily_limit.maximum, asked
      WHERE asked <= daily_limit.maximum
    ON CONFLICT (api_key_id, day, whose) DO UPDATE SET amount = s.amount + excluded.amount
    WHERE s.amount + excluded.amount <= s.maximum
    RETURNING s.amount INTO used;
    IF NOT FOUND THEN
      SELECT s.amount INTO used FROM key_spending s
      WHERE s.api_key_id = caller.api_key_id AND s.day = today AND s.whose = daily_limit.whose;
      RAISE EXCEPTION 'the limit of the day is used up' USING ERRCODE = 'check_violation',
        CONSTRAINT = 'daily_limit', DETAIL = daily_limit.maximum - coalesce(used, 0);
    END IF;
    least_left := least(least_left, daily_limit.maximum - used);
  END LOOP;
  -- Delete the rows of days that are over, and keep one day more, because a clock may be set back.
  DELETE FROM key_spending s WHERE s.api_key_id = caller.api_key_id AND s.day < today - 1;
  RETURN least_left;
END $$;
