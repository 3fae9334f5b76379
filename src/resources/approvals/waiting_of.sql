-- Locks and reads an item that may wait for an approval: a `payout`, a `batch`, a `deposit` or a change of
-- the `settings`. `item`: its fields for the approval. `data`: the data of its events. `is_same`: true if the
-- item is still as when its digest was made, so that members approve what they saw. It is also false for a
-- refund of a collection that is no longer paid, and for a change of settings that were changed since.
CREATE OR REPLACE FUNCTION waiting_of(
  subject text,
  merchant int,
  id bigint,
  OUT item approvable,
  OUT data jsonb,
  OUT is_same boolean
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  one payout;
  many batch;
  change settings_change;
  paid transaction;
  deposit deposit_approval;
BEGIN
  CASE subject
    WHEN 'payout' THEN
      SELECT p.* INTO one FROM payout p WHERE p.id = $3 AND p.merchant_id = $2 FOR UPDATE;
      item := approvable_of(one);
      data := payout_event_data(one, NULL);
      is_same := item.digest = payout_digest(
        one.merchant_id, one.payment_method, one.destination_phone, one.amount, one.reference,
          one.scheduled_at);
    WHEN 'batch' THEN
      SELECT b.* INTO many FROM batch b WHERE b.id = $3 AND b.merchant_id = $2 FOR UPDATE;
      item := approvable_of(many);
      data := batch_event_data(many, NULL);
      is_same := item.digest = batch_digest(many);
    WHEN 'settings' THEN
      SELECT c.* INTO change FROM settings_change c WHERE c.id = $3 AND c.merchant_id = $2 FOR UPDATE;
      item := approvable_of(change);
      data := settings_change_event_data(change);
      is_same := item.digest = settings_change_digest(change.merchant_id, change.id, change.before,
        change.after)
        AND change.before = (SELECT approval_settings(m) FROM merchant m WHERE m.id = $2);
    WHEN 'deposit' THEN
      SELECT t.* INTO paid FROM transaction t WHERE t.id = $3 AND t.merchant_id = $2 FOR UPDATE;
      SELECT a.* INTO deposit FROM deposit_approval a WHERE a.transaction_id = paid.id FOR UPDATE;
      item := approvable_of(deposit);
      data := deposit_event_data(paid, NULL, deposit.approval::text);
      is_same := item.digest = deposit_digest(paid) AND NOT EXISTS (
        SELECT FROM transaction t WHERE t.id = paid.refund_of_id AND t.status <> 'success');
  END CASE;
END $$;
