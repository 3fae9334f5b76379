-- Cancels a merchant's payout if it has not begun. If the payout begins at the same moment, the row lock
-- decides which of the two comes first. `status` is the status afterwards; there is no row where the
-- merchant has no such payout, and `moved` is null where the credential is refused.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION cancel_payout(
  merchant int,
  payout bigint,
  recording audit_recording,
  credential int DEFAULT NULL,
  credential_version int DEFAULT NULL,
  address text DEFAULT ''
) RETURNS TABLE (moved boolean, status payout_status)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  was payout_status;
BEGIN
  IF credential IS NOT NULL AND NOT may_act(merchant, credential, credential_version, address) THEN
    RETURN QUERY SELECT NULL::boolean, NULL::payout_status;
    RETURN;
  END IF;
  SELECT p.status INTO was FROM payout p WHERE p.id = $2 AND p.merchant_id = $1 FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  IF was = 'pending' THEN
    PERFORM cancel_pending(ARRAY[$2]);
    PERFORM record_change(recording, 'payout:' || $2, '{"status":"pending"}', '{"status":"cancelled"}');
  END IF;
  RETURN QUERY SELECT was = 'pending', CASE was WHEN 'pending' THEN 'cancelled' ELSE was END;
END $$;
