-- Cancels an item that a member rejected. `why` is added to its event. The caller has locked the item.
CREATE OR REPLACE FUNCTION cancel_waiting(item approvable, why jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF item.payout_id IS NOT NULL THEN
    PERFORM cancel_pending(ARRAY[item.payout_id], 'rejected', why);
  ELSIF item.batch_id IS NOT NULL THEN
    PERFORM cancel_batch(item.merchant_id, item.batch_id, 'rejected', why);
  ELSIF item.settings_change_id IS NOT NULL THEN
    PERFORM end_settings_changes(ARRAY[item.settings_change_id], 'rejected', why);
  ELSE
    PERFORM cancel_deposits(ARRAY[item.transaction_id], 'rejected', why);
  END IF;
END $$;
