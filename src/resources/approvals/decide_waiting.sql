-- Records a member's decision about a waiting item: a `payout`, a `batch`, a `deposit`, or a change of the
-- `settings`. The row lock lets decisions, cancellations and expiries of one item run one after another. The
-- last required approval releases the item; a rejection cancels it. `outcome` is `counted`, or the reason why
-- the decision did not count. Only `counted` writes the decision; `new_member` writes an alert. An item that
-- does not exist gives no row. `shown` is the digest that the member approves; null for a rejection.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION decide_waiting(
  merchant int,
  subject text,
  id bigint,
  credential int,
  credential_version int,
  decided approval_status,
  shown bytea,
  why text,
  recording audit_recording,
  address text DEFAULT ''
) RETURNS TABLE (outcome text, approval approval_status)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  person record;
  waiting record;
  item approvable;
  at timestamptz;
  refused text;
  is_new boolean;
  given int;
  events new_event[];
  target text := CASE subject WHEN 'settings' THEN 'settings_change' WHEN 'deposit' THEN 'transaction'
    ELSE subject END || ':' || $3;
BEGIN
  -- Lock the merchant first: all transactions that change settings take their locks in this order.
  IF subject = 'settings' THEN PERFORM FROM merchant m WHERE m.id = $1 FOR NO KEY UPDATE; END IF;
  SELECT * INTO person FROM person_of(merchant, credential, credential_version, address);
  IF NOT FOUND THEN
    RETURN QUERY SELECT 'no_person', NULL::approval_status;
    RETURN;
  END IF;
  SELECT * INTO waiting FROM waiting_of(subject, merchant, id);
  item := waiting.item;
  IF item.merchant_id IS NULL THEN RETURN; END IF;
  at := service_now() + (clock_timestamp() - now());
  refused := CASE
    WHEN NOT role_approves(person.role) THEN 'role'
    -- The maker of a settings change may reject it, which withdraws the change.
    WHEN person.member_id = ANY (item.makers) AND NOT (subject = 'settings' AND decided = 'rejected')
      THEN 'maker'
    WHEN NOT item.waits THEN CASE WHEN EXISTS (
        SELECT FROM approval_verdict v WHERE (v.payout_id = item.payout_id OR v.batch_id = item.batch_id
          OR v.settings_change_id = item.settings_change_id OR v.transaction_id = item.transaction_id)
          AND v.member_id = person.member_id AND v.verdict = decided
      ) THEN 'repeated' ELSE 'over' END
    WHEN item.expires_at <= at THEN 'expired'
    WHEN decided = 'approved' THEN CASE
      WHEN shown IS DISTINCT FROM item.digest OR waiting.is_same IS NOT TRUE THEN 'changed'
      WHEN 0 = ANY (item.makers) THEN 'unknown_maker'
      WHEN NOT (SELECT counts_as_approver(t, at) FROM team_member t WHERE t.id = person.member_id)
        THEN 'new_member' END
  END;
  IF refused IS NOT NULL THEN
    IF refused = 'new_member' THEN
      PERFORM emit_refused_approval(item, person.member_id, format('%s %s', subject, id), at);
    END IF;
    RETURN QUERY SELECT refused, item.approval;
    RETURN;
  END IF;
  INSERT INTO approval_verdict (merchant_id, payout_id, batch_id, settings_change_id, transaction_id,
    member_id, role, verdict, digest, reason, created_at)
  VALUES (merchant, item.payout_id, item.batch_id, item.settings_change_id, item.transaction_id,
    person.member_id, person.role, decided, item.digest, why, at)
  ON CONFLICT DO NOTHING;
  is_new := FOUND;
  IF decided = 'rejected' THEN
    PERFORM cancel_waiting(item, jsonb_build_object(
      'rejected_by', person.member_id, 'rejection_reason', why));
    PERFORM record_change(recording, target, '{"approval":"pending"}', jsonb_strip_nulls(jsonb_build_object(
      'approval', 'rejected', 'verdict', decided, 'reason', why)));
    RETURN QUERY SELECT 'counted', 'rejected'::approval_status;
    RETURN;
  END IF;
  given := approvals_of(item);
  -- An approval that the member gave before may count again: then the repetition can complete the approvals.
  IF NOT is_new AND given < item.required THEN
    RETURN QUERY SELECT 'repeated', item.approval;
    RETURN;
  END IF;
  IF given >= item.required THEN
    PERFORM release_waiting(item, at);
    SELECT * INTO waiting FROM waiting_of(subject, merchant, id);
    item := waiting.item;
  END IF;
  events := ARRAY[(merchant, 'approval_given', waiting.data || jsonb_build_object(
    'approved_by', person.member_id, 'approvals', given, 'approvals_required', item.required))::new_event];
  IF subject = 'batch' AND item.status = 'processing' THEN
    events := events || (merchant, 'batch_processing', waiting.data ||
      '{"previous_status":"pending_approval"}')::new_event;
  ELSIF subject = 'deposit' AND item.approval = 'approved' THEN
    events := events || (merchant, 'deposit_processing', waiting.data - 'approval' ||
      '{"previous_status":"pending"}')::new_event;
  END IF;
  PERFORM record_change(recording, target, '{"approval":"pending"}', jsonb_strip_nulls(jsonb_build_object(
    'approval', item.approval, 'verdict', decided, 'reason', why)));
  PERFORM append_events(events, at);
  RETURN QUERY SELECT 'counted', item.approval;
END $$;
