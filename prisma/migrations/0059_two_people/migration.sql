-- AlterTable
ALTER TABLE "merchant" ADD COLUMN     "approvals_cover_deposits" BOOLEAN NOT NULL DEFAULT false;

-- AlterTable
ALTER TABLE "team_member" ADD COLUMN     "approver_since" TIMESTAMPTZ(3);

-- AlterTable
ALTER TABLE "approval_verdict" ADD COLUMN     "settings_change_id" INTEGER;

-- CreateTable
CREATE TABLE "settings_change" (
    "id" SERIAL NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "before" JSONB NOT NULL,
    "after" JSONB NOT NULL,
    "approval" "approval_status" NOT NULL DEFAULT 'pending',
    "approval_digest" BYTEA NOT NULL,
    "approval_expires_at" TIMESTAMPTZ(3) NOT NULL,
    "approvals_required" SMALLINT NOT NULL,
    "maker_member_id" INTEGER NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "settings_change_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "settings_change_merchant_id_id_idx" ON "settings_change"("merchant_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "settings_change_id_merchant_id_key" ON "settings_change"("id", "merchant_id");

-- CreateIndex
CREATE UNIQUE INDEX "approval_verdict_settings_change_id_member_id_verdict_key" ON "approval_verdict"("settings_change_id", "member_id", "verdict");

-- AddForeignKey
ALTER TABLE "approval_verdict" ADD CONSTRAINT "approval_verdict_settings_change_id_merchant_id_fkey" FOREIGN KEY ("settings_change_id", "merchant_id") REFERENCES "settings_change"("id", "merchant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "settings_change" ADD CONSTRAINT "settings_change_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "settings_change" ADD CONSTRAINT "settings_change_maker_member_id_merchant_id_fkey" FOREIGN KEY ("maker_member_id", "merchant_id") REFERENCES "team_member"("id", "merchant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- Below: written by hand. What the schema language cannot say.

-- Members of today may go on approving.
UPDATE "team_member" SET "approver_since" = coalesce("joined_at", "created_at") WHERE "status" <> 'invited';

ALTER TABLE "approval_verdict"
  DROP CONSTRAINT "approval_verdict_subject",
  ADD CONSTRAINT "approval_verdict_subject" CHECK (num_nonnulls("payout_id", "batch_id", "settings_change_id") = 1);
ALTER TABLE "settings_change"
  ADD CONSTRAINT "settings_change_after" CHECK (jsonb_typeof("after") = 'object' AND "after" <> '{}'),
  ADD CONSTRAINT "settings_change_approval" CHECK ("approval" <> 'not_required'),
  ADD CONSTRAINT "settings_change_approval_digest" CHECK (length("approval_digest") = 32),
  ADD CONSTRAINT "settings_change_approvals_required" CHECK ("approvals_required" BETWEEN 1 AND 3);
-- One waits at a time: the people who decide see all that would change.
CREATE UNIQUE INDEX "settings_change_waiting" ON "settings_change" ("merchant_id") WHERE "approval" = 'pending';
CREATE INDEX "settings_change_awaiting" ON "settings_change" ("approval_expires_at") WHERE "approval" = 'pending';
SELECT wall_in('settings_change');
GRANT SELECT ON "settings_change" TO payments_service, payments_merchant;

-- The settings of approvals change by `change_approvals` and `decide_waiting` only.
REVOKE UPDATE ON "merchant" FROM payments_service;
GRANT UPDATE ("name", "status", "ip_whitelist", "deactivated_at", "notification_email", "locale") ON "merchant" TO payments_service;

-- As before; 0 stands for a person that the service does not know: a key that was shown to no known member acted.
CREATE OR REPLACE FUNCTION member_behind(merchant int, actor text) RETURNS int LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT coalesce(CASE split_part(actor, ':', 1) WHEN 'member' THEN split_part(actor, ':', 2)::int
    WHEN 'api_key' THEN (
      SELECT k.issued_to_id FROM api_key k WHERE k.id = split_part(actor, ':', 2)::int AND k.merchant_id = merchant) END, 0)
$$;
CREATE OR REPLACE FUNCTION ask_approval() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  NEW.approvals_required := (SELECT m.approvals_required FROM merchant m WHERE m.id = NEW.merchant_id);
  NEW.maker_member_id := nullif(member_behind(NEW.merchant_id, NEW.maker), 0);
  RETURN NEW;
END $$;
-- What is known of batches that are not decided yet: who made them.
UPDATE "batch" SET "maker_member_ids" = "maker_member_ids" || 0
WHERE "status" = 'draft' AND member_behind("merchant_id", "maker") = 0;

-- As before, and when a member joins or gets a higher role, it begins to be an approver anew; the owner hears of who joined.
CREATE OR REPLACE FUNCTION change_member() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  revoked int[];
BEGIN
  IF OLD.status = 'removed' THEN
    RAISE EXCEPTION 'team member % was removed', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF OLD.status = 'active' AND OLD.role = 'owner' AND (NEW.status <> 'active' OR NEW.role <> 'owner') THEN
    PERFORM FROM merchant WHERE id = OLD.merchant_id FOR NO KEY UPDATE;
    IF NOT EXISTS (
      SELECT FROM team_member m
      WHERE m.merchant_id = OLD.merchant_id AND m.role = 'owner' AND m.status = 'active' AND m.id <> OLD.id) THEN
      RAISE EXCEPTION 'merchant % keeps its last owner', OLD.merchant_id
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'team_member_last_owner';
    END IF;
  END IF;
  -- The roles are in order, the highest first.
  IF NEW.role < OLD.role OR (OLD.status, NEW.status) = ('invited', 'active') THEN
    NEW.approver_since := service_now();
  END IF;
  IF (OLD.status, NEW.status) = ('invited', 'active') THEN
    INSERT INTO event (merchant_id, type, data, created_at)
    VALUES (OLD.merchant_id, 'security_alert', jsonb_build_object(
      'kind', 'member_joined', 'message', format('%s joined the team as %s.', OLD.email, NEW.role), 'team_member_id', OLD.id),
      service_now());
  END IF;
  IF OLD.status = 'active' THEN
    PERFORM pg_advisory_xact_lock(72707373, OLD.merchant_id);
    UPDATE api_key k SET revoked_at = now() WHERE k.member_id = OLD.id AND k.revoked_at IS NULL;
    WITH ended AS (
      UPDATE api_key k SET revoked_at = now()
      WHERE k.issued_to_id = OLD.id AND k.kind = 'key' AND k.revoked_at IS NULL
        AND (NEW.status = 'removed' OR NOT k.scopes <@ key_scopes_of(NEW.role))
      RETURNING k.id, coalesce(k.expires_at > now(), true) AS lived
    )
    SELECT array_agg(id ORDER BY id) FILTER (WHERE lived) INTO revoked FROM ended;
    IF revoked IS NOT NULL THEN
      INSERT INTO event (merchant_id, type, data, created_at)
      VALUES (OLD.merchant_id, 'security_alert', jsonb_build_object(
        'kind', 'keys_revoked',
        'message', format('API keys that were shown to %s were revoked (ids: %s): the member %s.', OLD.email,
          array_to_string(revoked, ', '),
          CASE NEW.status WHEN 'removed' THEN 'was removed' ELSE format('became %s', NEW.role) END),
        'team_member_id', OLD.id, 'api_key_ids', revoked), service_now());
    END IF;
  END IF;
  RETURN NEW;
END $$;

-- What waits for people, as before and with a change of the settings. Among `makers`, 0 is a person that is not known.
ALTER TYPE approval_asked ADD ATTRIBUTE settings_change_id int;
CREATE OR REPLACE FUNCTION asked_of(payout) RETURNS approval_asked LANGUAGE sql STABLE AS $$
  SELECT $1.merchant_id, $1.id, NULL::int, $1.status = 'pending' AND $1.approval = 'pending', $1.approval, $1.status::text,
    $1.approval_digest, $1.approval_expires_at, $1.approvals_required::int, ARRAY[coalesce($1.maker_member_id, 0)], NULL::int
$$;
CREATE OR REPLACE FUNCTION asked_of(batch) RETURNS approval_asked LANGUAGE sql STABLE AS $$
  SELECT $1.merchant_id, NULL::bigint, $1.id, $1.status = 'pending_approval', $1.approval, $1.status::text,
    $1.approval_digest, $1.approval_expires_at, $1.approvals_required::int, $1.maker_member_ids, NULL::int
$$;
CREATE FUNCTION asked_of(settings_change) RETURNS approval_asked LANGUAGE sql STABLE AS $$
  SELECT $1.merchant_id, NULL::bigint, NULL::int, $1.approval = 'pending', $1.approval, $1.approval::text,
    $1.approval_digest, $1.approval_expires_at, $1.approvals_required::int, ARRAY[$1.maker_member_id], $1.id
$$;

-- Whether the approval of a member counts at a moment: the member may approve, and has been an approver for 24 hours.
CREATE FUNCTION counts_as_approver(team_member, at timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT $1.status = 'active' AND $1.role IN ('owner', 'admin', 'finance')
    AND coalesce($1.approver_since <= at - interval '24 hours', false)
$$;
-- How many approvals count now: of what waits as it is, by people who may still give one and did not ask for it. None does
-- where a person whom the service does not know asked for it, who may be any of them.
CREATE OR REPLACE FUNCTION approvals_of(approval_asked) RETURNS int LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp AS $$
  SELECT count(*)::int FROM approval_verdict v JOIN team_member t ON t.id = v.member_id
  WHERE (v.payout_id = $1.payout_id OR v.batch_id = $1.batch_id OR v.settings_change_id = $1.settings_change_id)
    AND v.verdict = 'approved' AND v.digest = $1.digest AND counts_as_approver(t, service_now())
    AND t.id <> ALL ($1.makers) AND 0 <> ALL ($1.makers)
$$;

CREATE TRIGGER "settings_change_approvals" BEFORE UPDATE OF "approval" ON "settings_change" FOR EACH ROW
  WHEN (OLD.approval <> 'approved' AND NEW.approval = 'approved') EXECUTE FUNCTION guard_approval();
CREATE TRIGGER "settings_change_guard" BEFORE UPDATE ON "settings_change" FOR EACH ROW WHEN (
  OLD.approval <> 'pending' OR
  (OLD.id, OLD.merchant_id, OLD.before, OLD.after, OLD.approval_digest, OLD.approval_expires_at, OLD.approvals_required,
    OLD.maker_member_id, OLD.created_at)
  IS DISTINCT FROM
  (NEW.id, NEW.merchant_id, NEW.before, NEW.after, NEW.approval_digest, NEW.approval_expires_at, NEW.approvals_required,
    NEW.maker_member_id, NEW.created_at)) EXECUTE FUNCTION guard_facts();

-- The settings of approvals, in the words of REST.
CREATE FUNCTION approval_settings(merchant) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('payouts_require_approval', $1.payouts_require_approval, 'approval_threshold', $1.approval_threshold,
    'approvals_required', $1.approvals_required, 'approvals_cover_deposits', $1.approvals_cover_deposits)
$$;
CREATE FUNCTION settings_change_digest(merchant int, id int, before jsonb, after jsonb) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT sha256(convert_to(format('settings:v1|%s|%s|%s|%s', merchant, id, before, after), 'UTF8'))
$$;
-- What the log keeps of a change of the settings that waits for people.
CREATE FUNCTION settings_change_told(settings_change) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('settings_change_id', $1.id, 'approval', $1.approval, 'changes', $1.after)
$$;

-- What approvals do not keep one person from doing, in sentences; none while they are off.
CREATE FUNCTION approval_gaps(merchant int) RETURNS text[] LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT array_remove(ARRAY[
    CASE WHEN NOT m.approvals_cover_deposits THEN
      'Deposits and refunds of any amount need no approval: set approvals_cover_deposits to change that.' END,
    (SELECT format('These API keys were shown to no member that the service knows: %s. What they ask for waits, but nobody can '
        || 'approve it: regenerate them as a signed-in owner or admin, or revoke them.', string_agg(k.id::text, ', ' ORDER BY k.id))
      FROM api_key k
      WHERE k.merchant_id = m.id AND k.kind = 'key' AND k.issued_to_id IS NULL AND k.revoked_at IS NULL
        AND coalesce(k.expires_at > now(), true) AND k.scopes && '{deposit,payout,bulk_pay}' HAVING count(*) > 0)], NULL)
  FROM merchant m WHERE m.id = $1 AND m.payouts_require_approval
$$;

-- Tells the owner that the settings of approvals changed. Nothing where they did not.
CREATE FUNCTION tell_approvals(merchant int, was jsonb, actor text, address text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  now_is merchant;
  is_on boolean;
  is_looser boolean;
BEGIN
  SELECT m.* INTO now_is FROM merchant m WHERE m.id = $1;
  is_on := now_is.payouts_require_approval;
  is_looser := (was->>'payouts_require_approval')::boolean AND (NOT is_on
    OR now_is.approval_threshold > (was->>'approval_threshold')::bigint
    OR now_is.approvals_required < (was->>'approvals_required')::int
    OR (was->>'approvals_cover_deposits')::boolean AND NOT now_is.approvals_cover_deposits);
  IF NOT is_looser AND (NOT is_on OR (was->>'payouts_require_approval')::boolean) THEN RETURN; END IF;
  INSERT INTO event (merchant_id, type, data, created_at)
  VALUES (merchant, 'security_alert', jsonb_strip_nulls(jsonb_build_object(
    'kind', CASE WHEN NOT is_on THEN 'approvals_off' WHEN is_looser THEN 'approvals_loosened' ELSE 'approvals_on' END,
    'message', CASE WHEN is_on THEN
        format('By %s: payouts and batches of %s XOF and more need %s approval(s). ', actor, now_is.approval_threshold,
          now_is.approvals_required) || array_to_string(approval_gaps(merchant), ' ')
      ELSE format('By %s: no payment needs an approval any more.', actor) END,
    'ip', address)), service_now());
END $$;

-- Changes the settings of approvals: of `asked`, in the words of REST, what tightens them at once; what loosens them, while they
-- are on, waits as a `settings_change` for as many people as they ask for. The caller holds the merchant's row.
-- `outcome` is `changed`, `waits` with the id of what waits, `no_person` where an API key would loosen them, or `conflict` where
-- a change waits already. The last two wrote nothing.
CREATE FUNCTION change_approvals(
  merchant int, credential int, credential_version int, actor text, asked jsonb, approval_ms bigint, address text
) RETURNS TABLE (outcome text, change_id int) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  at timestamptz := service_now();
  was jsonb := (SELECT approval_settings(m) FROM merchant m WHERE m.id = merchant);
  looser jsonb := '{}';
  person record;
  made settings_change;
BEGIN
  IF (was->>'payouts_require_approval')::boolean THEN
    looser := (SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each(asked) WHERE CASE key
      WHEN 'approval_threshold' THEN value > was->key
      WHEN 'approvals_required' THEN value < was->key
      ELSE value = 'false' AND was->key = 'true' END);
  END IF;
  IF looser <> '{}' THEN
    SELECT * INTO person FROM person_of(merchant, credential, credential_version);
    outcome := CASE WHEN person.member_id IS NULL THEN 'no_person'
      WHEN EXISTS (SELECT FROM settings_change c WHERE c.merchant_id = merchant AND c.approval = 'pending') THEN 'conflict' END;
    IF outcome IS NOT NULL THEN
      RETURN NEXT;
      RETURN;
    END IF;
  END IF;
  PERFORM apply_approvals(merchant, asked - ARRAY(SELECT jsonb_object_keys(looser)));
  PERFORM tell_approvals(merchant, was, actor, address);
  outcome := 'changed';
  IF looser <> '{}' THEN
    outcome := 'waits';
    change_id := nextval('settings_change_id_seq');
    was := (SELECT approval_settings(m) FROM merchant m WHERE m.id = merchant);
    INSERT INTO settings_change (id, merchant_id, before, after, approval_digest, approval_expires_at, approvals_required,
      maker_member_id, created_at)
    VALUES (change_id, merchant, was, looser, settings_change_digest(merchant, change_id, was, looser),
      at + approval_ms * interval '1 millisecond', (was->>'approvals_required')::int, person.member_id, at)
    RETURNING * INTO made;
    INSERT INTO event (merchant_id, type, data, created_at) VALUES
      (merchant, 'settings_pending_approval', settings_change_told(made), at),
      (merchant, 'security_alert', jsonb_strip_nulls(jsonb_build_object(
        'kind', 'approvals_loosening', 'message',
        format('%s asks to loosen the approvals (%s): it waits for %s approval(s).', actor, looser, made.approvals_required),
        'team_member_id', person.member_id, 'settings_change_id', made.id, 'ip', address)), at);
  END IF;
  RETURN NEXT;
END $$;
CREATE FUNCTION apply_approvals(merchant int, changes jsonb) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE merchant m SET
    payouts_require_approval = coalesce((changes->>'payouts_require_approval')::boolean, m.payouts_require_approval),
    approval_threshold = coalesce((changes->>'approval_threshold')::bigint, m.approval_threshold),
    approvals_required = coalesce((changes->>'approvals_required')::smallint, m.approvals_required),
    approvals_cover_deposits = coalesce((changes->>'approvals_cover_deposits')::boolean, m.approvals_cover_deposits)
  WHERE m.id = $1 AND changes <> '{}'
$$;

-- What a person decides about what waits: a `payout`, a `batch`, or a change of the `settings`. Of all who decide, cancel or let
-- expire at once each sees what the one before made of the row. The last approval that is needed lets it go: what is due is
-- enqueued with it. A rejection cancels it. `outcome` is `counted`, or why it did not count: `no_person`, `role`, `maker`, `over`,
-- `expired`, `changed`, `unknown_maker`, `new_member`, `repeated`; only `counted` wrote, and `new_member` an alert. No row where
-- there is no such thing. `shown` is what was approved; null of a rejection.
CREATE FUNCTION decide_waiting(
  merchant int, subject text, id bigint, credential int, credential_version int, decided approval_status, shown bytea, why text,
  address text DEFAULT ''
) RETURNS TABLE (outcome text, approval approval_status, status text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  person record;
  one payout;
  many batch;
  change settings_change;
  asked approval_asked;
  at timestamptz;
  is_same boolean;
  refused text;
  is_new boolean;
  given int;
  told jsonb;
BEGIN
  -- The row that is changed in the end comes first, as for everybody who changes settings.
  IF subject = 'settings' THEN PERFORM FROM merchant m WHERE m.id = $1 FOR NO KEY UPDATE; END IF;
  SELECT * INTO person FROM person_of(merchant, credential, credential_version, address);
  IF NOT FOUND THEN
    RETURN QUERY SELECT 'no_person', NULL::approval_status, NULL::text;
    RETURN;
  END IF;
  CASE subject
    WHEN 'payout' THEN
      SELECT p.* INTO one FROM payout p WHERE p.id = $3 AND p.merchant_id = $1 FOR UPDATE;
      asked := asked_of(one);
      is_same := asked.digest = payout_digest(
        one.merchant_id, one.payment_method, one.destination_phone, one.amount, one.reference, one.scheduled_at);
    WHEN 'batch' THEN
      SELECT b.* INTO many FROM batch b WHERE b.id = $3 AND b.merchant_id = $1 FOR UPDATE;
      asked := asked_of(many);
      is_same := asked.digest = batch_digest(many);
    WHEN 'settings' THEN
      SELECT c.* INTO change FROM settings_change c WHERE c.id = $3 AND c.merchant_id = $1 FOR UPDATE;
      asked := asked_of(change);
      is_same := asked.digest = settings_change_digest(change.merchant_id, change.id, change.before, change.after)
        AND change.before = (SELECT approval_settings(m) FROM merchant m WHERE m.id = $1);
  END CASE;
  IF asked.merchant_id IS NULL THEN RETURN; END IF;
  at := service_now() + (clock_timestamp() - now());
  refused := CASE
    WHEN person.role NOT IN ('owner', 'admin', 'finance') THEN 'role'
    -- Who asked for a change of the settings may take it back.
    WHEN person.member_id = ANY (asked.makers) AND NOT (subject = 'settings' AND decided = 'rejected') THEN 'maker'
    WHEN NOT asked.waits THEN CASE WHEN EXISTS (
        SELECT FROM approval_verdict v
        WHERE (v.payout_id = asked.payout_id OR v.batch_id = asked.batch_id OR v.settings_change_id = asked.settings_change_id)
          AND v.member_id = person.member_id AND v.verdict = decided
      ) THEN 'repeated' ELSE 'over' END
    WHEN asked.expires_at <= at THEN 'expired'
    WHEN decided = 'approved' THEN CASE
      WHEN shown IS DISTINCT FROM asked.digest OR is_same IS NOT TRUE THEN 'changed'
      WHEN 0 = ANY (asked.makers) THEN 'unknown_maker'
      WHEN NOT (SELECT counts_as_approver(t, at) FROM team_member t WHERE t.id = person.member_id) THEN 'new_member' END
  END;
  IF refused IS NOT NULL THEN
    IF refused = 'new_member' THEN
      INSERT INTO event (merchant_id, type, data, created_at)
      VALUES (merchant, 'security_alert', jsonb_strip_nulls(jsonb_build_object(
        'kind', 'approval_refused', 'message', format('member:%s tried to approve %s %s, and joined the team or got a higher role '
          || 'less than 24 hours ago: the approval was refused.', person.member_id, subject, id),
        'team_member_id', person.member_id, 'payout_id', asked.payout_id, 'batch_id', asked.batch_id,
        'settings_change_id', asked.settings_change_id)), at);
    END IF;
    RETURN QUERY SELECT refused, asked.approval, asked.status;
    RETURN;
  END IF;
  INSERT INTO approval_verdict (merchant_id, payout_id, batch_id, settings_change_id, member_id, role, verdict, digest, reason,
    created_at)
  VALUES (merchant, asked.payout_id, asked.batch_id, asked.settings_change_id, person.member_id, person.role, decided, asked.digest,
    why, at)
  ON CONFLICT DO NOTHING;
  is_new := FOUND;
  IF decided = 'rejected' THEN
    told := jsonb_build_object('rejected_by', person.member_id, 'rejection_reason', why);
    CASE subject
      WHEN 'payout' THEN PERFORM cancel_pending(ARRAY[one.id], 'rejected', told);
      WHEN 'batch' THEN PERFORM cancel_batch($1, many.id, 'rejected', told);
      WHEN 'settings' THEN PERFORM end_settings_change(change.id, 'rejected', told);
    END CASE;
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
        PERFORM tell_approvals(merchant, change.before, format('member:%s, approved by others', change.maker_member_id), NULL);
    END CASE;
  END IF;
  told := CASE subject WHEN 'payout' THEN payout_told(one, NULL) WHEN 'batch' THEN batch_told(many, NULL)
    ELSE settings_change_told(change) END;
  INSERT INTO event (merchant_id, type, data, created_at)
  VALUES (merchant, 'approval_given', told || jsonb_build_object(
    'approved_by', person.member_id, 'approvals', given, 'approvals_required', asked.required), at);
  IF subject = 'batch' AND asked.status = 'processing' THEN
    INSERT INTO event (merchant_id, type, data, created_at)
    VALUES (merchant, 'batch_processing', batch_told(many, 'pending_approval'), at);
  END IF;
  RETURN QUERY SELECT 'counted', asked.approval, asked.status;
END $$;

-- For nodes of the previous release, which go on while a deployment is under way.
CREATE OR REPLACE FUNCTION decide_approval(
  merchant int, payout bigint, batch int, credential int, credential_version int, decided approval_status, shown bytea, why text,
  address text DEFAULT ''
) RETURNS TABLE (outcome text, approval approval_status, status text)
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT outcome, approval, status FROM decide_waiting(merchant, CASE WHEN payout IS NULL THEN 'batch' ELSE 'payout' END,
    coalesce(payout, batch), credential, credential_version, decided, shown, why, address)
$$;

-- Ends a change of the settings that waits: it was rejected, or nobody decided in time.
CREATE FUNCTION end_settings_change(id int, becomes approval_status, why jsonb DEFAULT '{}') RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH ended AS (
    UPDATE settings_change c SET approval = becomes WHERE c.id = $1 AND c.approval = 'pending' RETURNING c.*, c AS self)
  INSERT INTO event (merchant_id, type, data, created_at)
  SELECT merchant_id, 'settings_change_cancelled', settings_change_told(self) || why, service_now() FROM ended
$$;
-- As before, and changes of the settings.
CREATE OR REPLACE FUNCTION expire_approvals(take int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  late bigint[] := ARRAY(
    SELECT p.id FROM payout p
    WHERE p.approval = 'pending' AND p.status = 'pending' AND p.approval_expires_at <= service_now()
    ORDER BY p.approval_expires_at LIMIT take FOR UPDATE SKIP LOCKED);
BEGIN
  PERFORM end_settings_change(c.id, 'expired') FROM (
    SELECT c.id FROM settings_change c WHERE c.approval = 'pending' AND c.approval_expires_at <= service_now()
    ORDER BY c.approval_expires_at LIMIT take FOR UPDATE SKIP LOCKED) AS c;
  IF late = '{}' THEN RETURN 0; END IF;
  RETURN cancel_pending(late, 'expired');
END $$;

REVOKE EXECUTE ON FUNCTION asked_of(settings_change), counts_as_approver, approval_settings, settings_change_digest,
  settings_change_told, approval_gaps, tell_approvals, change_approvals, apply_approvals, decide_waiting, end_settings_change
  FROM PUBLIC;
GRANT EXECUTE ON FUNCTION approval_gaps, change_approvals, decide_waiting TO payments_service;
