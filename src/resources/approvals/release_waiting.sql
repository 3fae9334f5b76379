-- Releases an item that has all its approvals: a payment that is due is sent, a change of the settings takes
-- effect. The caller has locked the item.
CREATE OR REPLACE FUNCTION release_waiting(item approvable, at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  one payout;
  change settings_change;
BEGIN
  IF item.payout_id IS NOT NULL THEN
    UPDATE payout p SET approval = 'approved' WHERE p.id = item.payout_id RETURNING p.* INTO one;
    IF one.send_at <= at THEN
      PERFORM enqueue_each('payouts.send', 'provider', ARRAY[one.payment_method]);
    END IF;
  ELSIF item.batch_id IS NOT NULL THEN
    UPDATE batch b SET approval = 'approved', status = 'processing', started_at = at
    WHERE b.id = item.batch_id;
    PERFORM enqueue_batches();
  ELSIF item.settings_change_id IS NOT NULL THEN
    UPDATE settings_change c SET approval = 'approved' WHERE c.id = item.settings_change_id
    RETURNING c.* INTO change;
    PERFORM apply_approvals(change.merchant_id, change.after);
    PERFORM emit_approval_settings(change.merchant_id, change.before, format('member:%s, approved by others',
      change.maker_member_id), NULL);
  ELSE
    UPDATE deposit_approval a SET approval = 'approved' WHERE a.transaction_id = item.transaction_id;
    -- The request was never sent: the job that sends `unsent` requests takes it.
    WITH begun AS (
      UPDATE transaction t SET status = 'processing' WHERE t.id = item.transaction_id RETURNING t.*
    )
    INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount,
      phone, state, fence_until, next_check_at, created_at)
    SELECT b.merchant_id, b.id, b.payment_method, 'disburse', b.correlation_id, b.amount, b.customer_phone,
      'unsent', now(), at, at
    FROM begun b;
  END IF;
END $$;
