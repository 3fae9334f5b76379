-- Cancels items of one kind that were not approved in time, at most `take`: payouts; where there is none,
-- deposits; where there is none either, changes of the settings. Only one kind, because a transaction
-- appends its events in one call. @returns how many were cancelled
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION expire_approvals(take int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  late bigint[] := ARRAY(
    SELECT p.id FROM payout p
    WHERE p.approval = 'pending' AND p.status = 'pending' AND p.approval_expires_at <= service_now()
    ORDER BY p.approval_expires_at LIMIT take FOR UPDATE SKIP LOCKED);
BEGIN
  IF late <> '{}' THEN RETURN cancel_pending(late, 'expired'); END IF;
  late := ARRAY(
    SELECT t.id FROM deposit_approval a JOIN transaction t ON t.id = a.transaction_id
    WHERE a.approval = 'pending' AND t.status = 'pending' AND a.approval_expires_at <= service_now()
    ORDER BY a.approval_expires_at LIMIT take FOR UPDATE OF t SKIP LOCKED);
  IF late <> '{}' THEN RETURN cancel_deposits(late, 'expired'); END IF;
  late := ARRAY(
    SELECT c.id FROM settings_change c WHERE c.approval = 'pending' AND c.approval_expires_at <= service_now()
    ORDER BY c.approval_expires_at LIMIT take FOR UPDATE SKIP LOCKED);
  IF late <> '{}' THEN PERFORM end_settings_changes(late::int[], 'expired'); END IF;
  RETURN cardinality(late);
END $$;
