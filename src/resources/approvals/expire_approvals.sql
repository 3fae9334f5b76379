-- Cancels payouts, deposits and changes of the settings that were not approved in time, at most `take` of
-- each kind. @returns the number of cancelled payouts and deposits
CREATE OR REPLACE FUNCTION expire_approvals(take int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  late bigint[] := ARRAY(
    SELECT p.id FROM payout p
    WHERE p.approval = 'pending' AND p.status = 'pending' AND p.approval_expires_at <= service_now()
    ORDER BY p.approval_expires_at LIMIT take FOR UPDATE SKIP LOCKED);
  deposits bigint[] := ARRAY(
    SELECT t.id FROM deposit_approval a JOIN transaction t ON t.id = a.transaction_id
    WHERE a.approval = 'pending' AND t.status = 'pending' AND a.approval_expires_at <= service_now()
    ORDER BY a.approval_expires_at LIMIT take FOR UPDATE OF t SKIP LOCKED);
BEGIN
  PERFORM end_settings_change(c.id, 'expired') FROM (
    SELECT c.id FROM settings_change c WHERE c.approval = 'pending' AND c.approval_expires_at <= service_now()
    ORDER BY c.approval_expires_at LIMIT take FOR UPDATE SKIP LOCKED) AS c;
  RETURN CASE WHEN late = '{}' THEN 0 ELSE cancel_pending(late, 'expired') END
    + CASE WHEN deposits = '{}' THEN 0 ELSE cancel_deposits(deposits, 'expired') END;
END $$;

REVOKE EXECUTE ON FUNCTION expire_approvals FROM PUBLIC;
GRANT EXECUTE ON FUNCTION expire_approvals TO payments_service;
