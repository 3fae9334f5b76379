-- AlterTable
ALTER TABLE "merchant" ADD COLUMN     "approvals_required" SMALLINT NOT NULL DEFAULT 1;

-- AlterTable
ALTER TABLE "api_key" ADD COLUMN     "issued_to_id" INTEGER;

-- AlterTable
ALTER TABLE "payout" ADD COLUMN     "approvals_required" SMALLINT NOT NULL DEFAULT 0,
ADD COLUMN     "maker_member_id" INTEGER;

-- CreateTable
CREATE TABLE "approval_verdict" (
    "id" BIGSERIAL NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "payout_id" BIGINT NOT NULL,
    "member_id" INTEGER NOT NULL,
    "role" "member_role" NOT NULL,
    "verdict" "approval_status" NOT NULL,
    "digest" BYTEA NOT NULL,
    "reason" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "approval_verdict_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "approval_verdict_payout_id_member_id_verdict_key" ON "approval_verdict"("payout_id", "member_id", "verdict");

-- AddForeignKey
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_issued_to_id_merchant_id_fkey" FOREIGN KEY ("issued_to_id", "merchant_id") REFERENCES "team_member"("id", "merchant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "payout" ADD CONSTRAINT "payout_maker_member_id_merchant_id_fkey" FOREIGN KEY ("maker_member_id", "merchant_id") REFERENCES "team_member"("id", "merchant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "approval_verdict" ADD CONSTRAINT "approval_verdict_payout_id_merchant_id_fkey" FOREIGN KEY ("payout_id", "merchant_id") REFERENCES "payout"("id", "merchant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "approval_verdict" ADD CONSTRAINT "approval_verdict_member_id_merchant_id_fkey" FOREIGN KEY ("member_id", "merchant_id") REFERENCES "team_member"("id", "merchant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- Below: written by hand. What the schema language cannot say.

-- What waited already asked for one person.
UPDATE "payout" SET "approvals_required" = 1 WHERE "approval" <> 'not_required';

ALTER TABLE "merchant" ADD CONSTRAINT "merchant_approvals_required" CHECK ("approvals_required" BETWEEN 1 AND 3);
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_issued_to_id" CHECK ("issued_to_id" IS NULL OR "kind" = 'key');
ALTER TABLE "payout" ADD CONSTRAINT "payout_approvals_required" CHECK (
  "approvals_required" BETWEEN 0 AND 3 AND ("approvals_required" > 0) = ("approval" <> 'not_required'));
ALTER TABLE "approval_verdict"
  ADD CONSTRAINT "approval_verdict_verdict" CHECK ("verdict" IN ('approved', 'rejected')),
  ADD CONSTRAINT "approval_verdict_role" CHECK ("role" IN ('owner', 'admin', 'finance')),
  ADD CONSTRAINT "approval_verdict_digest" CHECK (length("digest") = 32),
  ADD CONSTRAINT "approval_verdict_reason" CHECK (
    ("reason" IS NOT NULL) = ("verdict" = 'rejected') AND char_length("reason") BETWEEN 1 AND 200);
CREATE TRIGGER "approval_verdict_insert_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "approval_verdict"
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
SELECT wall_in('approval_verdict');
GRANT SELECT ON "approval_verdict" TO payments_service, payments_merchant;

-- What waits for a merchant's people, what ends first before the rest.
CREATE INDEX "payout_waiting" ON "payout" ("merchant_id", "approval_expires_at", "id")
  WHERE "approval" = 'pending' AND "status" = 'pending';

-- How many people are asked, and who none of them is, stands with the payout from the moment it is made: later changes of
-- the settings, or of who holds a key, change nothing of what waits.
CREATE FUNCTION ask_approval() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  maker_id int := split_part(NEW.maker, ':', 2)::int;
BEGIN
  NEW.approvals_required := (SELECT m.approvals_required FROM merchant m WHERE m.id = NEW.merchant_id);
  NEW.maker_member_id := CASE split_part(NEW.maker, ':', 1)
    WHEN 'member' THEN maker_id
    WHEN 'api_key' THEN (SELECT k.issued_to_id FROM api_key k WHERE k.id = maker_id AND k.merchant_id = NEW.merchant_id) END;
  RETURN NEW;
END $$;
CREATE TRIGGER "payout_asking" BEFORE INSERT ON "payout" FOR EACH ROW WHEN (NEW.approval <> 'not_required')
  EXECUTE FUNCTION ask_approval();

-- As before, and these two.
DROP TRIGGER "payout_guard" ON "payout";
CREATE TRIGGER "payout_guard" BEFORE UPDATE OF id, merchant_id, payment_method, destination_phone, amount, reference, scheduled_at,
  send_at, approval_digest, approval_expires_at, approvals_required, maker, maker_member_id, beneficiary_id, beneficiary_name,
  request_data, created_at
  ON "payout" FOR EACH ROW WHEN (
  (OLD.id, OLD.merchant_id, OLD.payment_method, OLD.destination_phone, OLD.amount, OLD.reference, OLD.scheduled_at, OLD.send_at,
    OLD.approval_digest, OLD.approval_expires_at, OLD.approvals_required, OLD.maker, OLD.maker_member_id, OLD.beneficiary_id,
    OLD.beneficiary_name, OLD.request_data, OLD.created_at)
  IS DISTINCT FROM
  (NEW.id, NEW.merchant_id, NEW.payment_method, NEW.destination_phone, NEW.amount, NEW.reference, NEW.scheduled_at, NEW.send_at,
    NEW.approval_digest, NEW.approval_expires_at, NEW.approvals_required, NEW.maker, NEW.maker_member_id, NEW.beneficiary_id,
    NEW.beneficiary_name, NEW.request_data, NEW.created_at)
) EXECUTE FUNCTION guard_payout();

-- How many approvals of a payout count now: of what it is, by people who may still give one.
CREATE FUNCTION approvals_of(payout) RETURNS int LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT count(*)::int FROM approval_verdict v JOIN team_member t ON t.id = v.member_id
  WHERE v.payout_id = $1.id AND v.verdict = 'approved' AND v.digest = $1.approval_digest
    AND t.status = 'active' AND t.role IN ('owner', 'admin', 'finance') AND t.id IS DISTINCT FROM $1.maker_member_id
$$;

-- Nothing is approved that too few people approved, whoever says so.
CREATE FUNCTION guard_approval() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF approvals_of(NEW) < NEW.approvals_required THEN
    RAISE EXCEPTION 'payout %: fewer than % people approved it', NEW.id, NEW.approvals_required
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'payout_approvals';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER "payout_approvals" BEFORE UPDATE OF approval ON "payout" FOR EACH ROW
  WHEN (OLD.approval <> 'approved' AND NEW.approval = 'approved') EXECUTE FUNCTION guard_approval();

-- The person of a session that lives, and the role as it is now; nobody where an API key calls. Whoever ends the session, or
-- changes the role, comes before this or waits for the verdict (`end_access`).
CREATE FUNCTION person_of(merchant int, credential int, credential_version int) RETURNS TABLE (member_id int, role member_role)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(72707373, merchant);
  RETURN QUERY
  SELECT t.id, t.role FROM api_key k
  JOIN team_member t ON t.id = k.member_id AND t.merchant_id = k.merchant_id AND t.status = 'active'
  JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
  WHERE k.id = credential AND k.merchant_id = merchant AND k.version = credential_version AND k.kind = 'session'
    AND k.revoked_at IS NULL AND k.expires_at > now();
END $$;

-- Cancels payouts that wait, of which the caller holds the rows: what was set aside for them is free again.
-- `becomes` is what their approval becomes, where that is why; `why` is told with them.
DROP FUNCTION cancel_pending;
CREATE FUNCTION cancel_pending(payout_ids bigint[], becomes approval_status DEFAULT NULL, why jsonb DEFAULT '{}') RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  at timestamptz := service_now();
  cancelled int;
BEGIN
  PERFORM FROM merchant_balance b
  WHERE b.merchant_id = ANY (ARRAY(SELECT p.merchant_id FROM payout p WHERE p.id = ANY (payout_ids)))
  ORDER BY b.merchant_id FOR UPDATE;
  WITH changed AS (
    UPDATE payout p
    SET status = 'cancelled', settled_at = at, evidence_source = 'service', approval = coalesce(becomes, p.approval)
    WHERE p.id = ANY (payout_ids) AND p.status = 'pending'
    RETURNING p.*, p AS self
  ), freed AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, held.cause, 'void', 'reserved', 'available', held.amount, at
    FROM changed c JOIN LATERAL (
      SELECT m.cause, m.amount FROM movement m WHERE m.cause = 'payout:' || c.id AND m.step = 'reserve' LIMIT 1) AS held ON true
    ORDER BY c.merchant_id, c.id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id, 'payout_cancelled', payout_told(c.self, 'pending') || why, at
    FROM changed c ORDER BY c.merchant_id, c.id
  )
  SELECT count(*) INTO cancelled FROM changed;
  RETURN cancelled;
END $$;

-- As before.
CREATE OR REPLACE FUNCTION cancel_payout(merchant int, payout bigint) RETURNS TABLE (moved boolean, status payout_status)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  was payout_status;
BEGIN
  SELECT p.status INTO was FROM payout p WHERE p.id = $2 AND p.merchant_id = $1 FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  IF was = 'pending' THEN PERFORM cancel_pending(ARRAY[$2]); END IF;
  RETURN QUERY SELECT was = 'pending', CASE was WHEN 'pending' THEN 'cancelled' ELSE was END;
END $$;
CREATE OR REPLACE FUNCTION cancel_payouts_of(merchant int, take int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  waiting bigint[] := ARRAY(
    SELECT p.id FROM payout p JOIN merchant m ON m.id = p.merchant_id AND m.status <> 'active'
    WHERE p.merchant_id = merchant AND p.status = 'pending'
    ORDER BY p.id LIMIT take FOR UPDATE OF p);
BEGIN
  IF waiting = '{}' THEN RETURN 0; END IF;
  RETURN cancel_pending(waiting);
END $$;
CREATE OR REPLACE FUNCTION expire_approvals(take int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  late bigint[] := ARRAY(
    SELECT p.id FROM payout p
    WHERE p.approval = 'pending' AND p.status = 'pending' AND p.approval_expires_at <= service_now()
    ORDER BY p.approval_expires_at LIMIT take FOR UPDATE SKIP LOCKED);
BEGIN
  IF late = '{}' THEN RETURN 0; END IF;
  RETURN cancel_pending(late, 'expired');
END $$;

-- What a person decides about a payout that waits. Of all who decide, cancel or let expire at once each sees what the one
-- before made of the row. The last approval that is needed lets it go: what is due is enqueued with it. A rejection cancels it.
-- `outcome` is `counted`, or why it did not count: `no_person`, `role`, `maker`, `over`, `expired`, `changed`, `repeated`;
-- only `counted` wrote. No row where there is no such payout. `shown` is what was approved; null of a rejection.
CREATE FUNCTION decide_payout(
  merchant int, payout bigint, credential int, credential_version int, decided approval_status, shown bytea, why text
) RETURNS TABLE (outcome text, approval approval_status, status payout_status)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  person record;
  waiting payout;
  at timestamptz;
  refused text;
  is_new boolean;
  given int;
BEGIN
  SELECT * INTO person FROM person_of(merchant, credential, credential_version);
  IF NOT FOUND THEN
    RETURN QUERY SELECT 'no_person', NULL::approval_status, NULL::payout_status;
    RETURN;
  END IF;
  SELECT p.* INTO waiting FROM payout p WHERE p.id = $2 AND p.merchant_id = $1 FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  at := service_now() + (clock_timestamp() - now());
  refused := CASE
    WHEN person.role NOT IN ('owner', 'admin', 'finance') THEN 'role'
    WHEN person.member_id = waiting.maker_member_id THEN 'maker'
    WHEN waiting.approval <> 'pending' OR waiting.status <> 'pending' THEN CASE WHEN EXISTS (
        SELECT FROM approval_verdict v WHERE v.payout_id = $2 AND v.member_id = person.member_id AND v.verdict = decided
      ) THEN 'repeated' ELSE 'over' END
    WHEN waiting.approval_expires_at <= at THEN 'expired'
    WHEN decided = 'approved' AND (shown IS DISTINCT FROM waiting.approval_digest OR shown <> payout_digest(
      waiting.merchant_id, waiting.payment_method, waiting.destination_phone, waiting.amount, waiting.reference,
      waiting.scheduled_at)) THEN 'changed'
  END;
  IF refused IS NOT NULL THEN
    RETURN QUERY SELECT refused, waiting.approval, waiting.status;
    RETURN;
  END IF;
  INSERT INTO approval_verdict (merchant_id, payout_id, member_id, role, verdict, digest, reason, created_at)
  VALUES (merchant, $2, person.member_id, person.role, decided, waiting.approval_digest, why, at)
  ON CONFLICT (payout_id, member_id, verdict) DO NOTHING;
  is_new := FOUND;
  IF decided = 'rejected' THEN
    PERFORM cancel_pending(
      ARRAY[$2], 'rejected', jsonb_build_object('rejected_by', person.member_id, 'rejection_reason', why));
    RETURN QUERY SELECT 'counted', 'rejected'::approval_status, 'cancelled'::payout_status;
    RETURN;
  END IF;
  given := approvals_of(waiting);
  -- Who approved before, and may again, is counted again.
  IF NOT is_new AND given < waiting.approvals_required THEN
    RETURN QUERY SELECT 'repeated', waiting.approval, waiting.status;
    RETURN;
  END IF;
  IF given >= waiting.approvals_required THEN
    UPDATE payout p SET approval = 'approved' WHERE p.id = $2 RETURNING p.* INTO waiting;
    IF waiting.send_at <= at THEN PERFORM enqueue_sends(ARRAY[waiting.payment_method]); END IF;
  END IF;
  INSERT INTO event (merchant_id, type, data, created_at)
  VALUES (merchant, 'approval_given', payout_told(waiting, NULL) || jsonb_build_object(
    'approved_by', person.member_id, 'approvals', given, 'approvals_required', waiting.approvals_required), at);
  RETURN QUERY SELECT 'counted', waiting.approval, waiting.status;
END $$;

REVOKE EXECUTE ON FUNCTION ask_approval, approvals_of, guard_approval, person_of, cancel_pending, decide_payout FROM PUBLIC;
GRANT EXECUTE ON FUNCTION decide_payout TO payments_service;
