-- Whatever waits for people waits as payouts do: one function says what is asked about a thing, one counts, one decides.
CREATE TYPE approval_asked AS (
  merchant_id int, payout_id bigint, batch_id int, waits boolean, approval approval_status, status text, digest bytea,
  expires_at timestamptz, required int, makers int[]
);
CREATE FUNCTION asked_of(payout) RETURNS approval_asked LANGUAGE sql STABLE AS $$
  SELECT $1.merchant_id, $1.id, NULL::int, $1.status = 'pending' AND $1.approval = 'pending', $1.approval, $1.status::text,
    $1.approval_digest, $1.approval_expires_at, $1.approvals_required::int, array_remove(ARRAY[$1.maker_member_id], NULL)
$$;
CREATE FUNCTION asked_of(batch) RETURNS approval_asked LANGUAGE sql STABLE AS $$
  SELECT $1.merchant_id, NULL::bigint, $1.id, $1.status = 'pending_approval', $1.approval, $1.status::text,
    $1.approval_digest, $1.approval_expires_at, $1.approvals_required::int, $1.maker_member_ids
$$;

-- How many approvals of it count now: of what it is, by people who may still give one.
CREATE FUNCTION approvals_of(approval_asked) RETURNS int LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT count(*)::int FROM approval_verdict v JOIN team_member t ON t.id = v.member_id
  WHERE (v.payout_id = $1.payout_id OR v.batch_id = $1.batch_id) AND v.verdict = 'approved' AND v.digest = $1.digest
    AND t.status = 'active' AND t.role IN ('owner', 'admin', 'finance') AND t.id <> ALL ($1.makers)
$$;
DROP FUNCTION approvals_of(payout);

CREATE OR REPLACE FUNCTION guard_approval() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF approvals_of(asked_of(NEW)) < NEW.approvals_required THEN
    RAISE EXCEPTION '% %: fewer than % people approved it', TG_TABLE_NAME, NEW.id, NEW.approvals_required
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = TG_NAME;
  END IF;
  RETURN NEW;
END $$;
-- A batch leaves `pending_approval` for `processing` as approved only (its constraint), and is that by enough people only.
CREATE TRIGGER "batch_approvals" BEFORE UPDATE OF "approval" ON "batch" FOR EACH ROW
  WHEN (OLD.approval <> 'approved' AND NEW.approval = 'approved') EXECUTE FUNCTION guard_approval();

-- As before, in the words of batches.
CREATE OR REPLACE FUNCTION ask_approval() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  NEW.approvals_required := (SELECT m.approvals_required FROM merchant m WHERE m.id = NEW.merchant_id);
  NEW.maker_member_id := member_behind(NEW.merchant_id, NEW.maker);
  RETURN NEW;
END $$;

-- What a person decides about a payout or a batch that waits. Of all who decide, cancel or let expire at once each sees what
-- the one before made of the row. The last approval that is needed lets it go: what is due is enqueued with it. A rejection
-- cancels it. `outcome` is `counted`, or why it did not count: `no_person`, `role`, `maker`, `over`, `expired`, `changed`,
-- `repeated`; only `counted` wrote. No row where there is no such thing. `shown` is what was approved; null of a rejection.
CREATE FUNCTION decide_approval(
  merchant int, payout bigint, batch int, credential int, credential_version int, decided approval_status, shown bytea, why text
) RETURNS TABLE (outcome text, approval approval_status, status text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  person record;
  one payout;
  many batch;
  asked approval_asked;
  at timestamptz;
  refused text;
  is_new boolean;
  given int;
  told jsonb;
BEGIN
  SELECT * INTO person FROM person_of(merchant, credential, credential_version);
  IF NOT FOUND THEN
    RETURN QUERY SELECT 'no_person', NULL::approval_status, NULL::text;
    RETURN;
  END IF;
  IF payout IS NOT NULL THEN
    SELECT p.* INTO one FROM payout p WHERE p.id = $2 AND p.merchant_id = $1 FOR UPDATE;
    asked := asked_of(one);
  ELSE
    SELECT b.* INTO many FROM batch b WHERE b.id = $3 AND b.merchant_id = $1 FOR UPDATE;
    asked := asked_of(many);
  END IF;
  IF asked.merchant_id IS NULL THEN RETURN; END IF;
  at := service_now() + (clock_timestamp() - now());
  refused := CASE
    WHEN person.role NOT IN ('owner', 'admin', 'finance') THEN 'role'
    WHEN person.member_id = ANY (asked.makers) THEN 'maker'
    WHEN NOT asked.waits THEN CASE WHEN EXISTS (
        SELECT FROM approval_verdict v
        WHERE (v.payout_id = $2 OR v.batch_id = $3) AND v.member_id = person.member_id AND v.verdict = decided
      ) THEN 'repeated' ELSE 'over' END
    WHEN asked.expires_at <= at THEN 'expired'
    WHEN decided = 'approved' AND (shown IS DISTINCT FROM asked.digest OR shown <> CASE WHEN payout IS NULL THEN batch_digest(many)
      ELSE payout_digest(one.merchant_id, one.payment_method, one.destination_phone, one.amount, one.reference, one.scheduled_at)
      END) THEN 'changed'
  END;
  IF refused IS NOT NULL THEN
    RETURN QUERY SELECT refused, asked.approval, asked.status;
    RETURN;
  END IF;
  INSERT INTO approval_verdict (merchant_id, payout_id, batch_id, member_id, role, verdict, digest, reason, created_at)
  VALUES (merchant, $2, $3, person.member_id, person.role, decided, asked.digest, why, at)
  ON CONFLICT DO NOTHING;
  is_new := FOUND;
  IF decided = 'rejected' THEN
    told := jsonb_build_object('rejected_by', person.member_id, 'rejection_reason', why);
    IF payout IS NULL THEN PERFORM cancel_batch($1, $3, 'rejected', told);
    ELSE PERFORM cancel_pending(ARRAY[$2], 'rejected', told); END IF;
    RETURN QUERY SELECT 'counted', 'rejected'::approval_status, 'cancelled';
    RETURN;
  END IF;
  given := approvals_of(asked);
  -- Who approved before, and may again, is counted again.
  IF NOT is_new AND given < asked.required THEN
    RETURN QUERY SELECT 'repeated', asked.approval, asked.status;
    RETURN;
  END IF;
  IF given >= asked.required THEN
    IF payout IS NULL THEN
      UPDATE batch b SET approval = 'approved', status = 'processing', started_at = at WHERE b.id = $3 RETURNING b.* INTO many;
      asked := asked_of(many);
      PERFORM enqueue_batches();
    ELSE
      UPDATE payout p SET approval = 'approved' WHERE p.id = $2 RETURNING p.* INTO one;
      asked := asked_of(one);
      IF one.send_at <= at THEN PERFORM enqueue_sends(ARRAY[one.payment_method]); END IF;
    END IF;
  END IF;
  told := CASE WHEN payout IS NULL THEN batch_told(many, NULL) ELSE payout_told(one, NULL) END;
  INSERT INTO event (merchant_id, type, data, created_at)
  VALUES (merchant, 'approval_given', told || jsonb_build_object(
    'approved_by', person.member_id, 'approvals', given, 'approvals_required', asked.required), at);
  IF asked.status = 'processing' THEN
    INSERT INTO event (merchant_id, type, data, created_at)
    VALUES (merchant, 'batch_processing', batch_told(many, 'pending_approval'), at);
  END IF;
  RETURN QUERY SELECT 'counted', asked.approval, asked.status;
END $$;
DROP FUNCTION decide_payout;

-- Cancels a batch that nobody approved in time: one, for it may have very many recipients. Whether there was one.
CREATE FUNCTION expire_batch() RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  late batch;
BEGIN
  SELECT b.* INTO late FROM batch b WHERE b.status = 'pending_approval' AND b.approval_expires_at <= service_now()
  ORDER BY b.approval_expires_at LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF FOUND THEN PERFORM cancel_batch(late.merchant_id, late.id, 'expired'); END IF;
  RETURN late.id IS NOT NULL;
END $$;

REVOKE EXECUTE ON FUNCTION asked_of(payout), asked_of(batch), approvals_of(approval_asked), decide_approval, expire_batch FROM PUBLIC;
GRANT EXECUTE ON FUNCTION decide_approval, expire_batch TO payments_service;
