-- Returns the ids between which all payouts of a period are; no row where the period has none. `oldest` or
-- `newest` is null where the period holds all payouts to that end of the list. Ids and times have nearly the
-- same order, but a clock may be wrong: so each day of the period (in UTC) gives its smallest and its largest
-- id, by the index. Row-level security keeps an expression out of an index, so the function has the rights of
-- its owner and names the merchant itself, which must be the one that the session is bound to; the caller
-- reads the rows between these ids with its own rights.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION payout_ids_of_period(merchant int, since timestamptz, until timestamptz)
RETURNS TABLE (oldest bigint, newest bigint) LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  first_day timestamptz := date_bin('1 day', coalesce(since, '-infinity'), '2000-01-01 UTC');
  last_day timestamptz := date_bin('1 day', coalesce(until, 'infinity'), '2000-01-01 UTC');
BEGIN
  IF merchant IS DISTINCT FROM nullif(current_setting('app.merchant', true), '')::int THEN
    RETURN;
  END IF;
  IF first_day > (
    SELECT date_bin('1 day', p.created_at, '2000-01-01 UTC') FROM payout p
    WHERE p.merchant_id = merchant AND p.id > 0 ORDER BY 1 LIMIT 1
  ) THEN
    WITH RECURSIVE reached AS (
      (SELECT date_bin('1 day', p.created_at, '2000-01-01 UTC') AS day, p.id FROM payout p
      WHERE p.merchant_id = merchant AND p.id > 0
        AND date_bin('1 day', p.created_at, '2000-01-01 UTC') >= first_day
        AND date_bin('1 day', p.created_at, '2000-01-01 UTC') <= last_day
      ORDER BY 1, 2 LIMIT 1)
      UNION ALL
      SELECT later.day, later.id FROM reached r CROSS JOIN LATERAL (
        SELECT date_bin('1 day', p.created_at, '2000-01-01 UTC') AS day, p.id FROM payout p
        WHERE p.merchant_id = merchant AND p.id > 0
          AND date_bin('1 day', p.created_at, '2000-01-01 UTC') > r.day
          AND date_bin('1 day', p.created_at, '2000-01-01 UTC') <= last_day
        ORDER BY 1, 2 LIMIT 1
      ) AS later
    )
    SELECT min(r.id) INTO oldest FROM reached r;
    IF oldest IS NULL THEN RETURN; END IF;
  END IF;
  IF last_day < (
    SELECT date_bin('1 day', p.created_at, '2000-01-01 UTC') FROM payout p
    WHERE p.merchant_id = merchant AND p.id > 0 ORDER BY 1 DESC LIMIT 1
  ) THEN
    WITH RECURSIVE reached AS (
      (SELECT date_bin('1 day', p.created_at, '2000-01-01 UTC') AS day, p.id FROM payout p
      WHERE p.merchant_id = merchant AND p.id > 0
        AND date_bin('1 day', p.created_at, '2000-01-01 UTC') >= first_day
        AND date_bin('1 day', p.created_at, '2000-01-01 UTC') <= last_day
      ORDER BY 1 DESC, 2 DESC LIMIT 1)
      UNION ALL
      SELECT earlier.day, earlier.id FROM reached r CROSS JOIN LATERAL (
        SELECT date_bin('1 day', p.created_at, '2000-01-01 UTC') AS day, p.id FROM payout p
        WHERE p.merchant_id = merchant AND p.id > 0
          AND date_bin('1 day', p.created_at, '2000-01-01 UTC') >= first_day
          AND date_bin('1 day', p.created_at, '2000-01-01 UTC') < r.day
        ORDER BY 1 DESC, 2 DESC LIMIT 1
      ) AS earlier
    )
    SELECT max(r.id) INTO newest FROM reached r;
    IF newest IS NULL THEN RETURN; END IF;
  END IF;
  RETURN NEXT;
END $$;
