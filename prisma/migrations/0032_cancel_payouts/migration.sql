-- Written by hand: what the schema language cannot say.

-- Cancels up to `take` payouts of a merchant that have not begun: nobody begins those of one that is not active, and nobody
-- can ask for another. Those of an active one are its own to cancel. @returns how many
CREATE FUNCTION cancel_payouts_of(merchant int, take int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  waiting bigint[] := ARRAY(
    SELECT p.id FROM payout p JOIN merchant m ON m.id = p.merchant_id AND m.status <> 'active'
    WHERE p.merchant_id = merchant AND p.status = 'pending'
    ORDER BY p.id LIMIT take FOR UPDATE OF p);
BEGIN
  IF waiting = '{}' THEN RETURN 0; END IF;
  RETURN cancel_pending(waiting, false);
END $$;

REVOKE EXECUTE ON FUNCTION cancel_payouts_of FROM PUBLIC;
GRANT EXECUTE ON FUNCTION cancel_payouts_of TO payments_service;
