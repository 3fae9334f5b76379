-- Decides as a person about something that waits: a `payout`, a `batch`, a `deposit`, or a change of the
-- `settings`. Of several who decide, cancel or let expire at once each sees what the one before made of
-- the row. The last approval that is needed lets it go, and what is due is enqueued with it. A rejection
-- cancels it. `outcome` is `counted`, or why it did not count: `no_person`, `role`, `maker`, `over`,
-- `expired`, `changed`, `unknown_maker`, `new_member`, `repeated`; only `counted` wrote, and `new_member`
-- an alert. No row where there is no such thing. `shown` is the digest of what was approved; null of a
-- rejection.
CREATE OR REPLACE FUNCTION decide_waiting(
  merchant int, subject text, id bigint, credential int, credential_version int, decided approval_status,
  shown bytea, why text, recording audit_recording, address text DEFAULT ''
) RETURNS TABLE (outcome text, approval approval_status)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  person record;
  one payout;
  many batch;
  change settings_change;
  paid transaction;
  deposit deposit_approval;
  asked approval_asked;
  at timestamptz;
  is_same boolean;
  refused text;
  is_new boolean;
  given int;
  told jsonb;
  target text := CASE subject WHEN 'settings' THEN 'settings_change' WHEN 'deposit' THEN 'transaction'
    ELSE subject END || ':' || $3;
BEGIN
  -- The row that is changed in the end comes first, as for everybody who changes settings.
  IF subject = 'settings' THEN PERFORM FROM merchant m WHERE m.id = $1 FOR NO KEY UPDATE; END IF;
  SELECT * INTO person FROM person_of(merchant, credential, credential_version, address);
  IF NOT FOUND THEN
    RETURN QUERY SELECT 'no_person', NULL::approval_status;
    RETURN;
  END IF;
  CASE subject
    WHEN 'payout' THEN
      SELECT p.* INTO one FROM payout p WHERE p.id = $3 AND p.merchant_id = $1 FOR UPDATE;
      asked := asked_of(one);
      is_same := asked.digest = payout_digest(
        one.merchant_id, one.payment_method, one.destination_phone, one.amount, one.reference,
          one.scheduled_at);
    WHEN 'batch' THEN
      SELECT b.* INTO many FROM batch b WHERE b.id = $3 AND b.merchant_id = $1 FOR UPDATE;
      asked := asked_of(many);
      is_same := asked.digest = batch_digest(many);
    WHEN 'settings' THEN
      SELECT c.* INTO change FROM settings_change c WHERE c.id = $3 AND c.merchant_id = $1 FOR UPDATE;
      asked := asked_of(change);
      is_same := asked.digest = settings_change_digest(change.merchant_id, change.id, change.before,
        change.after)
        AND change.before = (SELECT approval_settings(m) FROM merchant m WHERE m.id = $1);
    WHEN 'deposit' THEN
      SELECT t.* INTO paid FROM transaction t WHERE t.id = $3 AND t.merchant_id = $1 FOR UPDATE;
      SELECT a.* INTO deposit FROM deposit_approval a WHERE a.transaction_id = paid.id FOR UPDATE;
      asked := asked_of(deposit);
      is_same := asked.digest = deposit_digest(paid) AND NOT EXISTS (
        SELECT FROM transaction t WHERE t.id = paid.refund_of_id AND t.status <> 'success');
  END CASE;
  IF asked.merchant_id IS NULL THEN RETURN; END IF;
  at := service_now() + (clock_timestamp() - now());
  refused := CASE
    WHEN NOT role_approves(person.role) THEN 'role'
    -- Who asked for a change of the settings may take it back.
    WHEN person.member_id = ANY (asked.makers) AND NOT (subject = 'settings' AND decided = 'rejected')
      THEN 'maker'
    WHEN NOT asked.waits THEN CASE WHEN EXISTS (
        SELECT FROM approval_verdict v
        WHERE (v.payout_id = asked.payout_id OR v.batch_id = asked.batch_id
          OR v.settings_change_id = asked.settings_change_id
            OR v.transaction_id = asked.transaction_id)
          AND v.member_id = person.member_id AND v.verdict = decided
      ) THEN 'repeated' ELSE 'over' END
    WHEN asked.expires_at <= at THEN 'expired'
    WHEN decided = 'approved' THEN CASE
      WHEN shown IS DISTINCT FROM asked.digest OR is_same IS NOT TRUE THEN 'changed'
      WHEN 0 = ANY (asked.makers) THEN 'unknown_maker'
      WHEN NOT (SELECT counts_as_approver(t, at) FROM team_member t WHERE t.id = person.member_id)
        THEN 'new_member' END
  END;
  IF refused IS NOT NULL THEN
    IF refused = 'new_member' THEN
      INSERT INTO event (merchant_id, type, data, created_at)
      VALUES (merchant, 'security_alert', jsonb_strip_nulls(jsonb_build_object(
        'kind', 'approval_refused', 'message',
          format('member:%s tried to approve %s %s, and joined the team or got a higher role '
          || 'less than 24 hours ago: the approval was refused.', person.member_id, subject, id),
        'team_member_id', person.member_id, 'payout_id', asked.payout_id, 'batch_id', asked.batch_id,
        'settings_change_id', asked.settings_change_id, 'transaction_id', asked.transaction_id)), at);
    END IF;
    RETURN QUERY SELECT refused, asked.approval;
    RETURN;
  END IF;
  INSERT INTO approval_verdict (merchant_id, payout_id, batch_id, settings_change_id, transaction_id,
    member_id, role, verdict, digest, reason, created_at)
  VALUES (merchant, asked.payout_id, asked.batch_id, asked.settings_change_id, asked.transaction_id,
    person.member_id, person.role, decided, asked.digest, why, at)
  ON CONFLICT DO NOTHING;
  is_new := FOUND;
  IF decided = 'rejected' THEN
    told := jsonb_build_object('rejected_by', person.member_id, 'rejection_reason', why);
    CASE subject
      WHEN 'payout' THEN PERFORM cancel_pending(ARRAY[one.id], 'rejected', told);
      WHEN 'batch' THEN PERFORM cancel_batch($1, many.id, 'rejected', told);
      WHEN 'settings' THEN PERFORM end_settings_change(change.id, 'rejected', told);
      WHEN 'deposit' THEN PERFORM cancel_deposits(ARRAY[paid.id], 'rejected', told);
    END CASE;
    PERFORM record_change(recording, target, '{"approval":"pending"}', jsonb_strip_nulls(jsonb_build_object(
      'approval', 'rejected', 'verdict', decided, 'reason', why)));
    RETURN QUERY SELECT 'counted', 'rejected'::approval_status;
    RETURN;
  END IF;
  given := approvals_of(asked);
  -- Who approved before, and may again, is counted again.
  IF NOT is_new AND given < asked.required THEN
    RETURN QUERY SELECT 'repeated', asked.approval;
    RETURN;
  END IF;
  IF given >= asked.required THEN
    CASE subject
      WHEN 'payout' THEN
        UPDATE payout p SET approval = 'approved' WHERE p.id = one.id RETURNING p.* INTO one;
        asked := asked_of(one);
        IF one.send_at <= at THEN PERFORM enqueue_sends(ARRAY[one.payment_method]); END IF;
      WHEN 'batch' THEN
        UPDATE batch b SET approval = 'approved', status = 'processing', started_at = at WHERE b.id = many.id
        RETURNING b.* INTO many;
        asked := asked_of(many);
        PERFORM enqueue_batches();
      WHEN 'settings' THEN
        UPDATE settings_change c SET approval = 'approved' WHERE c.id = change.id RETURNING c.* INTO change;
        asked := asked_of(change);
        PERFORM apply_approvals(merchant, change.after);
        PERFORM tell_approvals(merchant, change.before, format('member:%s, approved by others',
          change.maker_member_id), NULL);
      WHEN 'deposit' THEN
        UPDATE deposit_approval a SET approval = 'approved' WHERE a.transaction_id = paid.id RETURNING a.*
          INTO deposit;
        UPDATE transaction t SET status = 'processing' WHERE t.id = paid.id RETURNING t.* INTO paid;
        asked := asked_of(deposit);
        -- Nothing of it has left: the job that sends such requests takes it.
        INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount,
          phone, state, fence_until, next_check_at, created_at)
        VALUES (merchant, paid.id, paid.payment_method, 'disburse', paid.correlation_id, paid.amount,
          paid.customer_phone, 'unsent', now(), at, at);
    END CASE;
  END IF;
  told := CASE subject WHEN 'payout' THEN payout_told(one, NULL) WHEN 'batch' THEN batch_told(many, NULL)
    WHEN 'settings' THEN settings_change_told(change)
    ELSE deposit_told(paid, NULL, deposit.approval::text) END;
  INSERT INTO event (merchant_id, type, data, created_at)
  VALUES (merchant, 'approval_given', told || jsonb_build_object(
    'approved_by', person.member_id, 'approvals', given, 'approvals_required', asked.required), at);
  IF subject = 'batch' AND asked.status = 'processing' THEN
    INSERT INTO event (merchant_id, type, data, created_at)
    VALUES (merchant, 'batch_processing', batch_told(many, 'pending_approval'), at);
  END IF;
  IF subject = 'deposit' AND asked.approval = 'approved' THEN
    INSERT INTO event (merchant_id, type, data, created_at)
    VALUES (merchant, 'deposit_processing', deposit_told(paid, 'pending', NULL), at);
  END IF;
  PERFORM record_change(recording, target, '{"approval":"pending"}', jsonb_strip_nulls(jsonb_build_object(
    'approval', asked.approval, 'verdict', decided, 'reason', why)));
  RETURN QUERY SELECT 'counted', asked.approval;
END $$;

REVOKE EXECUTE ON FUNCTION decide_waiting FROM PUBLIC;
GRANT EXECUTE ON FUNCTION decide_waiting TO payments_service;
