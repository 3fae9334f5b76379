-- Cancels up to `take` pending payouts, and up to `take` deposits that wait for approval, of a merchant that
-- is not active. The approval of such a deposit becomes `rejected`. For an active merchant it does nothing:
-- the merchant cancels its own payouts. @returns how many were cancelled
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION cancel_payouts_of(merchant int, take int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  waiting bigint[] := ARRAY(
    SELECT p.id FROM payout p JOIN merchant m ON m.id = p.merchant_id AND m.status <> 'active'
    WHERE p.merchant_id = merchant AND p.status = 'pending'
    ORDER BY p.id LIMIT take FOR UPDATE OF p);
  deposits bigint[] := ARRAY(
    SELECT t.id FROM deposit_approval a JOIN transaction t ON t.id = a.transaction_id
      JOIN merchant m ON m.id = t.merchant_id AND m.status <> 'active'
    WHERE a.merchant_id = merchant AND a.approval = 'pending' AND t.status = 'pending'
    ORDER BY t.id LIMIT take FOR UPDATE OF t);
BEGIN
  RETURN CASE WHEN waiting = '{}' THEN 0 ELSE cancel_pending(waiting) END
    + CASE WHEN deposits = '{}' THEN 0 ELSE cancel_deposits(deposits, 'rejected') END;
END $$;
