-- Cancels what a person rejected; `why` goes into its event. The caller holds its row.
CREATE OR REPLACE FUNCTION cancel_waiting(asked approval_asked, why jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF asked.payout_id IS NOT NULL THEN
    PERFORM cancel_pending(ARRAY[asked.payout_id], 'rejected', why);
  ELSIF asked.batch_id IS NOT NULL THEN
    PERFORM cancel_batch(asked.merchant_id, asked.batch_id, 'rejected', why);
  ELSIF asked.settings_change_id IS NOT NULL THEN
    PERFORM end_settings_change(asked.settings_change_id, 'rejected', why);
  ELSE
    PERFORM cancel_deposits(ARRAY[asked.transaction_id], 'rejected', why);
  END IF;
END $$;

REVOKE EXECUTE ON FUNCTION cancel_waiting FROM PUBLIC;
