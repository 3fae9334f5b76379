-- AlterTable
ALTER TABLE "approval_verdict" ADD COLUMN     "transaction_id" BIGINT;

-- CreateTable
CREATE TABLE "deposit_approval" (
    "transaction_id" BIGINT NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "approval" "approval_status" NOT NULL DEFAULT 'pending',
    "approval_digest" BYTEA NOT NULL,
    "approval_expires_at" TIMESTAMPTZ(3) NOT NULL,
    "approvals_required" SMALLINT NOT NULL,
    "maker" TEXT NOT NULL,
    "maker_member_id" INTEGER,

    CONSTRAINT "deposit_approval_pkey" PRIMARY KEY ("transaction_id")
);

-- CreateIndex
CREATE UNIQUE INDEX "deposit_approval_transaction_id_merchant_id_key" ON "deposit_approval"("transaction_id", "merchant_id");

-- CreateIndex
CREATE UNIQUE INDEX "deposit_approval_merchant_id_transaction_id_key" ON "deposit_approval"("merchant_id", "transaction_id");

-- CreateIndex
CREATE UNIQUE INDEX "approval_verdict_transaction_id_member_id_verdict_key" ON "approval_verdict"("transaction_id", "member_id", "verdict");

-- AddForeignKey
ALTER TABLE "approval_verdict" ADD CONSTRAINT "approval_verdict_transaction_id_merchant_id_fkey" FOREIGN KEY ("transaction_id", "merchant_id") REFERENCES "deposit_approval"("transaction_id", "merchant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "deposit_approval" ADD CONSTRAINT "deposit_approval_merchant_id_transaction_id_fkey" FOREIGN KEY ("merchant_id", "transaction_id") REFERENCES "transaction"("merchant_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- Below: written by hand. What the schema language cannot say.

ALTER TABLE "approval_verdict"
  DROP CONSTRAINT "approval_verdict_subject",
  ADD CONSTRAINT "approval_verdict_subject" CHECK (
    num_nonnulls("payout_id", "batch_id", "settings_change_id", "transaction_id") = 1);
ALTER TABLE "deposit_approval"
  ADD CONSTRAINT "deposit_approval_approval" CHECK ("approval" <> 'not_required'),
  ADD CONSTRAINT "deposit_approval_digest" CHECK (length("approval_digest") = 32),
  ADD CONSTRAINT "deposit_approval_required" CHECK ("approvals_required" BETWEEN 1 AND 3);
CREATE INDEX "deposit_approval_awaiting" ON "deposit_approval" ("approval_expires_at") WHERE "approval" = 'pending';
CREATE INDEX "deposit_approval_waiting" ON "deposit_approval" ("merchant_id", "approval_expires_at", "transaction_id")
  WHERE "approval" = 'pending';
SELECT wall_in('deposit_approval');
GRANT SELECT ON "deposit_approval" TO payments_service, payments_merchant;

-- What is approved: who is paid what, how, and which collection it gives back.
CREATE FUNCTION deposit_digest(transaction) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT sha256(convert_to(format('deposit:v1|%s|%s|%s|%s|%s|%s', $1.merchant_id, $1.payment_method, $1.customer_phone, $1.amount,
    $1.refund_of_id, $1.reference), 'UTF8'))
$$;
-- What the log keeps of a deposit that is made, waits, or is let go.
CREATE FUNCTION deposit_told(transaction, was text, approval text) RETURNS jsonb LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'transaction_id', $1.id, 'reference', $1.reference, 'amount', $1.amount, 'currency', 'XOF', 'payment_method', $1.payment_method,
    'customer_phone', $1.customer_phone, 'status', $1.status, 'previous_status', was, 'refund_of', $1.refund_of_id,
    'approval', approval))
$$;
CREATE FUNCTION deposit_told(transaction, was text, approval approval_status) RETURNS jsonb LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT deposit_told($1, was, approval::text)
$$;

ALTER TYPE approval_asked ADD ATTRIBUTE transaction_id bigint;
CREATE OR REPLACE FUNCTION asked_of(payout) RETURNS approval_asked LANGUAGE sql STABLE AS $$
  SELECT $1.merchant_id, $1.id, NULL::int, $1.status = 'pending' AND $1.approval = 'pending', $1.approval, $1.status::text,
    $1.approval_digest, $1.approval_expires_at, $1.approvals_required::int, ARRAY[coalesce($1.maker_member_id, 0)], NULL::int,
    NULL::bigint
$$;
CREATE OR REPLACE FUNCTION asked_of(batch) RETURNS approval_asked LANGUAGE sql STABLE AS $$
  SELECT $1.merchant_id, NULL::bigint, $1.id, $1.status = 'pending_approval', $1.approval, $1.status::text,
    $1.approval_digest, $1.approval_expires_at, $1.approvals_required::int, $1.maker_member_ids, NULL::int, NULL::bigint
$$;
CREATE OR REPLACE FUNCTION asked_of(settings_change) RETURNS approval_asked LANGUAGE sql STABLE AS $$
  SELECT $1.merchant_id, NULL::bigint, NULL::int, $1.approval = 'pending', $1.approval, $1.approval::text,
    $1.approval_digest, $1.approval_expires_at, $1.approvals_required::int, ARRAY[$1.maker_member_id], $1.id, NULL::bigint
$$;
CREATE FUNCTION asked_of(deposit_approval) RETURNS approval_asked LANGUAGE sql STABLE AS $$
  SELECT $1.merchant_id, NULL::bigint, NULL::int, $1.approval = 'pending', $1.approval, $1.approval::text, $1.approval_digest,
    $1.approval_expires_at, $1.approvals_required::int, ARRAY[coalesce($1.maker_member_id, 0)], NULL::int, $1.transaction_id
$$;
CREATE OR REPLACE FUNCTION approvals_of(approval_asked) RETURNS int LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp AS $$
  SELECT count(*)::int FROM approval_verdict v JOIN team_member t ON t.id = v.member_id
  WHERE (v.payout_id = $1.payout_id OR v.batch_id = $1.batch_id OR v.settings_change_id = $1.settings_change_id
      OR v.transaction_id = $1.transaction_id)
    AND v.verdict = 'approved' AND v.digest = $1.digest AND counts_as_approver(t, service_now())
    AND t.id <> ALL ($1.makers) AND 0 <> ALL ($1.makers)
$$;

-- As `guard_approval`, for a table whose key is not `id`.
CREATE FUNCTION guard_deposit_approval() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF approvals_of(asked_of(NEW)) < NEW.approvals_required THEN
    RAISE EXCEPTION 'deposit %: fewer than % people approved it', NEW.transaction_id, NEW.approvals_required
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = TG_NAME;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER "deposit_approvals" BEFORE UPDATE OF "approval" ON "deposit_approval" FOR EACH ROW
  WHEN (OLD.approval <> 'approved' AND NEW.approval = 'approved') EXECUTE FUNCTION guard_deposit_approval();
CREATE FUNCTION guard_deposit_facts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'deposit %: what is approved never changes', OLD.transaction_id USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER "deposit_approval_guard" BEFORE UPDATE ON "deposit_approval" FOR EACH ROW WHEN (
  OLD.approval <> 'pending' OR
  (OLD.transaction_id, OLD.merchant_id, OLD.approval_digest, OLD.approval_expires_at, OLD.approvals_required, OLD.maker,
    OLD.maker_member_id)
  IS DISTINCT FROM
  (NEW.transaction_id, NEW.merchant_id, NEW.approval_digest, NEW.approval_expires_at, NEW.approvals_required, NEW.maker,
    NEW.maker_member_id)) EXECUTE FUNCTION guard_deposit_facts();
-- A deposit that waits is let go by people only.
CREATE FUNCTION guard_waiting_deposit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM deposit_approval a WHERE a.transaction_id = NEW.id AND a.approval = 'approved') THEN RETURN NEW; END IF;
  RAISE EXCEPTION 'deposit %: nobody approved it', NEW.id USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER "transaction_waiting" BEFORE UPDATE OF "status" ON "transaction" FOR EACH ROW WHEN (
  OLD.transaction_type = 'deposit' AND OLD.status = 'pending' AND NEW.status NOT IN ('pending', 'cancelled'))
  EXECUTE FUNCTION guard_waiting_deposit();

-- Cancels deposits that wait, of which the caller holds the rows: what was set aside for them is free again.
CREATE FUNCTION cancel_deposits(ids bigint[], becomes approval_status DEFAULT NULL, why jsonb DEFAULT '{}') RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  at timestamptz := service_now();
  cancelled int;
BEGIN
  PERFORM FROM merchant_balance b
  WHERE b.merchant_id = ANY (ARRAY(SELECT t.merchant_id FROM transaction t WHERE t.id = ANY (ids)))
  ORDER BY b.merchant_id FOR UPDATE;
  WITH changed AS (
    UPDATE transaction t SET status = 'cancelled', settled_at = at, evidence_source = 'service'
    WHERE t.id = ANY (ids) AND t.status = 'pending' AND t.transaction_type = 'deposit'
    RETURNING t.*, t AS self
  ), decided AS (
    UPDATE deposit_approval a SET approval = becomes FROM changed c
    WHERE a.transaction_id = c.id AND becomes IS NOT NULL
  ), freed AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'transaction:' || c.id, 'void', 'reserved', 'available', c.amount, at
    FROM changed c ORDER BY c.merchant_id, c.id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id, 'deposit_cancelled', deposit_told(c.self, 'pending', coalesce(becomes, 'pending')) || why, at
    FROM changed c ORDER BY c.merchant_id, c.id
  )
  SELECT count(*) INTO cancelled FROM changed;
  RETURN cancelled;
END $$;
-- As before, and deposits.
CREATE OR REPLACE FUNCTION cancel_payouts_of(merchant int, take int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  waiting bigint[] := ARRAY(
    SELECT p.id FROM payout p JOIN merchant m ON m.id = p.merchant_id AND m.status <> 'active'
    WHERE p.merchant_id = merchant AND p.status = 'pending'
    ORDER BY p.id LIMIT take FOR UPDATE OF p);
  deposits bigint[] := ARRAY(
    SELECT t.id FROM deposit_approval a JOIN transaction t ON t.id = a.transaction_id
      JOIN merchant m ON m.id = t.merchant_id AND m.status <> 'active'
    WHERE a.merchant_id = merchant AND a.approval = 'pending' AND t.status = 'pending'
    ORDER BY t.id LIMIT take FOR UPDATE OF t);
BEGIN
  RETURN CASE WHEN waiting = '{}' THEN 0 ELSE cancel_pending(waiting) END
    + CASE WHEN deposits = '{}' THEN 0 ELSE cancel_deposits(deposits) END;
END $$;
CREATE OR REPLACE FUNCTION expire_approvals(take int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  late bigint[] := ARRAY(
    SELECT p.id FROM payout p
    WHERE p.approval = 'pending' AND p.status = 'pending' AND p.approval_expires_at <= service_now()
    ORDER BY p.approval_expires_at LIMIT take FOR UPDATE SKIP LOCKED);
  deposits bigint[] := ARRAY(
    SELECT t.id FROM deposit_approval a JOIN transaction t ON t.id = a.transaction_id
    WHERE a.approval = 'pending' AND t.status = 'pending' AND a.approval_expires_at <= service_now()
    ORDER BY a.approval_expires_at LIMIT take FOR UPDATE OF t SKIP LOCKED);
BEGIN
  PERFORM end_settings_change(c.id, 'expired') FROM (
    SELECT c.id FROM settings_change c WHERE c.approval = 'pending' AND c.approval_expires_at <= service_now()
    ORDER BY c.approval_expires_at LIMIT take FOR UPDATE SKIP LOCKED) AS c;
  RETURN CASE WHEN late = '{}' THEN 0 ELSE cancel_pending(late, 'expired') END
    + CASE WHEN deposits = '{}' THEN 0 ELSE cancel_deposits(deposits, 'expired') END;
END $$;

-- As before, and of a merchant whose approvals cover deposits one of the threshold and more waits for people: `outcome` is then
-- `waits`, its money is set aside, and nothing is asked of the operator. `makers` are who asks, null where nobody is asked.
DROP FUNCTION deposit_many;
CREATE FUNCTION deposit_many(
  merchant_ids int[], api_key_ids int[], api_key_versions int[], providers provider[], phones text[], amounts bigint[],
  refs text[], requests jsonb[], refund_of_ids bigint[], fence_ms bigint, first_check_ms bigint,
  identities uuid[] DEFAULT NULL, addresses text[] DEFAULT NULL, makers text[] DEFAULT NULL, approval_ms bigint DEFAULT NULL
) RETURNS TABLE (
  place int, outcome text, transaction_id bigint, request_id bigint, correlation_id uuid, created_at timestamptz,
  is_orphan boolean
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz(3);
  item record;
  made record;
  merchant int;
  -- What the merchant has left.
  rest bigint;
  outcomes text[];
  ids bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(merchant_ids)]);
  request_ids bigint[];
  correlation_ids uuid[];
  -- Those that an operator executed before a restore.
  orphans bigint[] := '{}';
  refunded bigint[];
  -- Those that wait for people.
  waiting bigint[] := '{}';
  recorded bigint[] := '{}';
  -- Money was kept for one of theirs that was not made after all.
  misled int[];
BEGIN
  PERFORM pg_advisory_xact_lock_shared(72707373, id)
  FROM (SELECT DISTINCT id FROM unnest(merchant_ids) AS id ORDER BY id) AS merchant;
  -- What is given back of a collection changes under its lock only.
  IF array_remove(refund_of_ids, NULL) <> '{}' THEN
    PERFORM FROM transaction t WHERE t.id = ANY (refund_of_ids) ORDER BY t.id FOR UPDATE;
  END IF;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchant_ids) ORDER BY b.merchant_id FOR UPDATE;
  -- Read after the locks: whoever waited meets a halt that came meanwhile.
  FOR item IN
    SELECT i.merchant_id, i.amount, i.refund_of_id, i.place, known.active, known.threshold, old.found, original.rest AS refundable,
      balance.available, orphan.provider IS NOT NULL AS is_orphan, orphan.provider <> i.provider AS is_elsewhere,
      (SELECT service_now() + (clock_timestamp() - now())) AS now,
      EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) AS halted
    FROM unnest(merchant_ids, api_key_ids, api_key_versions, providers, amounts, refs, refund_of_ids, identities, addresses)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, provider, amount, reference, refund_of_id, identity,
        address, place)
    LEFT JOIN LATERAL (
      SELECT true AS active,
        CASE WHEN m.payouts_require_approval AND m.approvals_cover_deposits THEN m.approval_threshold END AS threshold
      FROM api_key k JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
      WHERE k.id = i.api_key_id AND k.merchant_id = i.merchant_id AND k.version = i.api_key_version AND k.revoked_at IS NULL
        AND (addresses IS NULL OR whitelist_allows(m.ip_whitelist, i.address))
      LIMIT 1
    ) AS known ON true
    LEFT JOIN LATERAL (
      -- Said so, only the index that identifies it can answer, whatever the planner believes of the others.
      SELECT true AS found FROM transaction t
      WHERE (t.reference, t.merchant_id) BETWEEN (i.reference, i.merchant_id) AND (i.reference, i.merchant_id) LIMIT 1
    ) AS old ON true
    -- What is left of a collection: paid, less what was given back and what is on its way.
    LEFT JOIN LATERAL (
      SELECT t.settled_amount - (
        SELECT coalesce(sum(CASE WHEN r.status = 'success' THEN r.settled_amount WHEN r.status IN ('pending', 'processing') THEN r.amount END), 0)
        FROM transaction r WHERE r.refund_of_id = t.id) AS rest
      FROM transaction t
      WHERE t.id = i.refund_of_id AND t.merchant_id = i.merchant_id AND t.transaction_type = 'pay' AND t.status = 'success'
      LIMIT 1
    ) AS original ON true
    LEFT JOIN LATERAL (
      SELECT b.available FROM merchant_balance b WHERE b.merchant_id = i.merchant_id LIMIT 1
    ) AS balance ON true
    LEFT JOIN LATERAL (
      -- What the operator did before a restore is only asked about. One operator executed it, so no other one is asked for it.
      SELECT o.provider FROM operator_orphan o WHERE o.correlation_id = i.identity ORDER BY o.provider <> i.provider LIMIT 1
    ) AS orphan ON true
    ORDER BY i.merchant_id, i.place
  LOOP
    at := item.now;
    -- What is covered leaves less for the next.
    IF merchant IS DISTINCT FROM item.merchant_id THEN
      merchant := item.merchant_id;
      rest := item.available;
    END IF;
    outcomes[item.place] := CASE
      WHEN item.active IS NULL THEN 'unauthenticated'
      WHEN item.found OR item.is_elsewhere THEN 'duplicate'
      WHEN item.refund_of_id IS NOT NULL AND item.refundable IS NULL THEN 'not_refundable'
      WHEN item.amount > item.refundable THEN 'too_large'
      WHEN item.halted THEN 'halted'
      WHEN item.refund_of_id = ANY (refunded) THEN 'again'
      WHEN item.amount <= rest THEN 'made'
      ELSE 'short' END;
    IF outcomes[item.place] = 'made' THEN
      rest := rest - item.amount;
      ids[item.place] := nextval('transaction_id_seq');
      IF item.is_orphan THEN orphans := orphans || ids[item.place];
      -- What the operator executed already is not asked about again.
      ELSIF makers IS NOT NULL AND item.amount >= item.threshold THEN waiting := waiting || ids[item.place]; END IF;
      IF item.refund_of_id IS NOT NULL THEN refunded := refunded || item.refund_of_id; END IF;
    END IF;
  END LOOP;
  FOR made IN
    WITH made AS (
      -- A collection may take the reference at this moment: who is there first has it.
      INSERT INTO transaction (id, merchant_id, transaction_type, payment_method, customer_phone, amount, status, reference,
        request_data, refund_of_id, created_at, correlation_id)
      SELECT i.id, i.merchant_id, 'deposit', i.provider, i.phone, i.amount,
        CASE WHEN i.id = ANY (waiting) THEN 'pending' ELSE 'processing' END::transaction_status, i.reference, i.request,
        i.refund_of_id, at, coalesce(i.identity, gen_random_uuid())
      FROM unnest(ids, merchant_ids, providers, phones, amounts, refs, requests, refund_of_ids, identities)
        AS i (id, merchant_id, provider, phone, amount, reference, request, refund_of_id, identity)
      WHERE i.id IS NOT NULL ORDER BY i.merchant_id, i.reference, i.id
      ON CONFLICT (reference, merchant_id) DO NOTHING
      RETURNING id, merchant_id, payment_method, customer_phone, amount, status, reference, refund_of_id, correlation_id,
        transaction AS self
    ), reserved AS (
      INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
      SELECT merchant_id, 'transaction:' || id, 'reserve', 'available', 'reserved', amount, at FROM made ORDER BY merchant_id, id
    ), told AS (
      INSERT INTO event (merchant_id, type, data, created_at)
      SELECT merchant_id, 'deposit_' || status, deposit_told(self, NULL, CASE status WHEN 'pending' THEN 'pending' END), at
      FROM made ORDER BY merchant_id, id
    ), waits AS (
      INSERT INTO deposit_approval (transaction_id, merchant_id, approval_digest, approval_expires_at, approvals_required, maker,
        maker_member_id)
      SELECT made.id, made.merchant_id, deposit_digest(self), at + approval_ms * interval '1 millisecond', m.approvals_required,
        makers[array_position(ids, made.id)], nullif(member_behind(made.merchant_id, makers[array_position(ids, made.id)]), 0)
      FROM made JOIN merchant m ON m.id = made.merchant_id WHERE made.status = 'pending' ORDER BY made.merchant_id, made.id
    ), asked AS (
      INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount, phone, state,
        fence_until, next_check_at, accepted_at, created_at)
      SELECT merchant_id, id, payment_method, 'disburse', correlation_id, amount, customer_phone,
        CASE WHEN id = ANY (orphans) THEN 'accepted' ELSE 'sending' END::operator_request_state,
        now() + fence_ms * interval '1 millisecond',
        at + CASE WHEN id = ANY (orphans) THEN 0 ELSE first_check_ms END * interval '1 millisecond',
        CASE WHEN id = ANY (orphans) THEN at END, at
      FROM made WHERE status <> 'pending' ORDER BY id
      RETURNING id, transaction_id, correlation_id
    )
    SELECT made.id AS transaction_id, asked.id, asked.correlation_id
    FROM made LEFT JOIN asked ON asked.transaction_id = made.id
  LOOP
    place := array_position(ids, made.transaction_id);
    request_ids[place] := made.id;
    correlation_ids[place] := made.correlation_id;
    recorded := recorded || made.transaction_id;
  END LOOP;
  FOR nth IN 1 .. cardinality(merchant_ids) LOOP
    place := nth;
    outcome := outcomes[nth];
    IF outcome = 'made' AND ids[nth] <> ALL (recorded) THEN
      outcome := 'duplicate';
      misled := misled || merchant_ids[nth];
    ELSIF outcome = 'short' AND merchant_ids[nth] = ANY (misled) THEN
      outcome := 'again';
    END IF;
    transaction_id := CASE WHEN outcome = 'made' THEN ids[nth] END;
    request_id := request_ids[nth];
    correlation_id := correlation_ids[nth];
    created_at := CASE WHEN outcome = 'made' THEN at END;
    is_orphan := coalesce(ids[nth] = ANY (orphans), false);
    IF outcome = 'made' AND ids[nth] = ANY (waiting) THEN outcome := 'waits'; END IF;
    RETURN NEXT;
  END LOOP;
END $$;

-- As before, and of deposits.
CREATE OR REPLACE FUNCTION decide_waiting(
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
  paid transaction;
  deposit deposit_approval;
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
    WHEN person.role NOT IN ('owner', 'admin', 'finance') THEN 'role'
    -- Who asked for a change of the settings may take it back.
    WHEN person.member_id = ANY (asked.makers) AND NOT (subject = 'settings' AND decided = 'rejected') THEN 'maker'
    WHEN NOT asked.waits THEN CASE WHEN EXISTS (
        SELECT FROM approval_verdict v
        WHERE (v.payout_id = asked.payout_id OR v.batch_id = asked.batch_id OR v.settings_change_id = asked.settings_change_id
            OR v.transaction_id = asked.transaction_id)
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
        'settings_change_id', asked.settings_change_id, 'transaction_id', asked.transaction_id)), at);
    END IF;
    RETURN QUERY SELECT refused, asked.approval, asked.status;
    RETURN;
  END IF;
  INSERT INTO approval_verdict (merchant_id, payout_id, batch_id, settings_change_id, transaction_id, member_id, role, verdict,
    digest, reason, created_at)
  VALUES (merchant, asked.payout_id, asked.batch_id, asked.settings_change_id, asked.transaction_id, person.member_id, person.role,
    decided, asked.digest, why, at)
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
      WHEN 'deposit' THEN
        UPDATE deposit_approval a SET approval = 'approved' WHERE a.transaction_id = paid.id RETURNING a.* INTO deposit;
        UPDATE transaction t SET status = 'processing' WHERE t.id = paid.id RETURNING t.* INTO paid;
        asked := asked_of(deposit);
        -- Nothing of it has left: the job that sends such requests takes it.
        INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount, phone, state, fence_until,
          next_check_at, created_at)
        VALUES (merchant, paid.id, paid.payment_method, 'disburse', paid.correlation_id, paid.amount, paid.customer_phone, 'unsent',
          now(), at, at);
    END CASE;
  END IF;
  told := CASE subject WHEN 'payout' THEN payout_told(one, NULL) WHEN 'batch' THEN batch_told(many, NULL)
    WHEN 'settings' THEN settings_change_told(change) ELSE deposit_told(paid, NULL, deposit.approval) END;
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
  RETURN QUERY SELECT 'counted', asked.approval, asked.status;
END $$;


-- As before, and deposits that wait: nothing of them moves, and what is paid was approved.
CREATE OR REPLACE FUNCTION audit_disbursements(ids bigint[], payout_ids bigint[])
RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  causes text[] := ARRAY(
    SELECT 'transaction:' || id FROM unnest(ids) AS id UNION ALL SELECT 'payout:' || id FROM unnest(payout_ids) AS id);
  originals bigint[] := ids || ARRAY(
    SELECT r.refund_of_id FROM transaction r WHERE r.id = ANY (ids) AND r.refund_of_id IS NOT NULL);
BEGIN
  RETURN QUERY
  SELECT 'reservations_end_once', held.merchant_id, format('%s is %s, and its money still reserved', held.cause, t.status)
  FROM movement held JOIN transaction t ON t.id = transaction_of(held.cause)
  WHERE held.step = 'reserve' AND t.status NOT IN ('pending', 'processing') AND held.cause = ANY (causes) AND t.id = ANY (ids)
    AND NOT EXISTS (
      SELECT FROM movement e WHERE e.cause = held.cause AND e.cause = ANY (causes) AND e.step IN ('post', 'void'));

  RETURN QUERY
  WITH subject AS (
    SELECT 'transaction:' || t.id AS cause, t.merchant_id, t.payment_method, t.amount, t.settled_amount,
      false AS scheduled, CASE t.status WHEN 'success' THEN 'completed' ELSE t.status::text END AS status,
      t.status = 'reversed' AS back
    FROM transaction t WHERE t.transaction_type = 'deposit' AND t.id = ANY (ids)
    UNION ALL
    SELECT 'payout:' || p.id, p.merchant_id, p.payment_method, p.amount, p.settled_amount, p.scheduled_at IS NOT NULL,
      p.status::text, p.reversed_at IS NOT NULL
    FROM payout p WHERE p.id = ANY (payout_ids)
  ), due AS (
    -- What must have moved. What was scheduled sets nothing aside before it begins.
    SELECT s.*, clearing_account(s.payment_method) AS account, s.status IN ('completed', 'reversed') AS paid,
      s.status IN ('failed', 'cancelled') AS given_up
    FROM subject s
  ), money AS (
    SELECT m.cause, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too,
      sum(m.amount) FILTER (WHERE m.step = 'reserve') AS reserved, sum(m.amount) FILTER (WHERE m.step = 'post') AS posted,
      sum(m.amount) FILTER (WHERE m.step = 'release') AS released, sum(m.amount) FILTER (WHERE m.step = 'void') AS voided,
      sum(m.amount) FILTER (WHERE m.step = 'reverse') AS reversed,
      min(CASE m.step WHEN 'post' THEN m.credit WHEN 'reverse' THEN m.debit END) AS account,
      max(CASE m.step WHEN 'post' THEN m.credit WHEN 'reverse' THEN m.debit END) AS account_too
    FROM movement m
    WHERE (m.step IN ('reserve', 'post', 'release', 'void') OR m.step = 'reverse' AND m.credit = 'available')
      AND m.cause = ANY (causes)
    GROUP BY m.cause
  )
  SELECT 'disbursements_end_once', coalesce(d.merchant_id, m.merchant_id), CASE
    WHEN d.cause IS NULL THEN m.cause || ' set money aside, and is no payment out'
    ELSE format('%s over %s is %s%s: set aside %s, paid %s, given back %s, returned %s', d.cause, d.amount, d.status,
      CASE WHEN d.back THEN ', taken back' END, coalesce(m.reserved, 0), coalesce(m.posted, 0),
      coalesce(m.released, 0) + coalesce(m.voided, 0), coalesce(m.reversed, 0)) END
  FROM due d FULL JOIN money m USING (cause)
  WHERE d.cause IS NULL
    OR CASE WHEN m.cause IS NULL THEN NOT (d.scheduled AND (d.status = 'pending' OR d.given_up))
      ELSE d.scheduled AND d.status = 'pending'
        OR (m.merchant_id, m.merchant_id_too) IS DISTINCT FROM (d.merchant_id, d.merchant_id)
        OR m.reserved IS DISTINCT FROM d.amount
        OR m.posted IS DISTINCT FROM CASE WHEN d.paid THEN d.settled_amount END
        OR coalesce(m.released, 0) <> CASE WHEN d.paid THEN d.amount - d.settled_amount ELSE 0 END
        OR m.voided IS DISTINCT FROM CASE WHEN d.given_up THEN d.amount END
        OR m.reversed IS DISTINCT FROM CASE WHEN d.back THEN d.settled_amount END
        OR d.paid AND (m.account, m.account_too) IS DISTINCT FROM (d.account, d.account) END;

  RETURN QUERY
  WITH given AS (
    SELECT r.refund_of_id AS id, count(DISTINCT r.merchant_id) AS merchants, max(r.merchant_id) AS merchant_id,
      coalesce(sum(r.settled_amount) FILTER (WHERE r.status = 'success'), 0) AS done,
      coalesce(sum(r.amount) FILTER (WHERE r.status IN ('pending', 'processing')), 0) AS open
    FROM transaction r
    WHERE r.refund_of_id IS NOT NULL AND r.refund_of_id = ANY (originals)
    GROUP BY r.refund_of_id
  )
  SELECT 'refunds_stay_within', g.merchant_id, format('transaction:%s, %s over %s, was given back %s, and %s are on their way',
    g.id, coalesce(t.status::text, 'not there'), t.settled_amount, g.done, g.open)
  FROM given g LEFT JOIN transaction t ON t.id = g.id
  WHERE (t.transaction_type = 'pay' AND t.merchant_id = g.merchant_id AND g.merchants = 1
    AND g.done + g.open <= t.settled_amount
    AND (t.status = 'reversed' OR t.status = 'success' AND g.done < t.settled_amount)) IS NOT TRUE;

  -- A chain holds where each of its moves is lawful, none is told twice, and the hashes of what was told cancel out but for
  -- the last one.
  RETURN QUERY
  WITH lawful (type, was, status) AS MATERIALIZED (VALUES
    ('deposit_pending', '', 'pending'), ('deposit_processing', 'pending', 'processing'),
    ('deposit_cancelled', 'pending', 'cancelled'), ('deposit_processing', '', 'processing'), ('deposit_completed', 'processing', 'success'),
    ('deposit_failed', 'processing', 'failed'), ('deposit_reversed', 'success', 'reversed'),
    ('payout_pending', '', 'pending'), ('payout_processing', 'pending', 'processing'), ('payout_failed', 'pending', 'failed'),
    ('payout_cancelled', 'pending', 'cancelled'), ('payout_completed', 'processing', 'completed'),
    ('payout_failed', 'processing', 'failed'), ('payout_reversed', 'completed', 'completed')
  ), told AS (
    SELECT c.cause, min(c.merchant_id) AS merchant_id, max(c.merchant_id) AS merchant_id_too,
      count(*) FILTER (WHERE c.was = '') AS begun, count(*) FILTER (WHERE c.type LIKE '%\_reversed') AS reversed,
      bool_and(((c.type, c.was, c.status) IN (SELECT l.type, l.was, l.status FROM lawful l)) IS TRUE)
        AND count(*) = count(DISTINCT c.type) AS lawful,
      sum(hashtext(c.status)::bigint - CASE c.was WHEN '' THEN 0 ELSE hashtext(c.was) END) AS net
    FROM (
      SELECT e.id, e.merchant_id, e.type, e.data->>'status' AS status, coalesce(e.data->>'previous_status', '') AS was,
        event_cause(e.data) AS cause
      FROM event e WHERE event_cause(e.data) = ANY (causes) AND (e.type LIKE 'deposit\_%' OR e.type LIKE 'payout\_%')
      OFFSET 0
    ) c GROUP BY c.cause
  ), subject AS (
    SELECT 'transaction:' || t.id AS cause, t.merchant_id, t.status::text AS status, t.status = 'reversed' AS back
    FROM transaction t WHERE t.transaction_type = 'deposit' AND t.id = ANY (ids)
    UNION ALL
    SELECT 'payout:' || p.id, p.merchant_id, p.status::text, p.reversed_at IS NOT NULL
    FROM payout p WHERE p.id = ANY (payout_ids)
  )
  SELECT 'events_tell_every_change', coalesce(s.merchant_id, told.merchant_id), CASE
    WHEN s.cause IS NULL THEN format('events tell of %s, which is not there', told.cause)
    ELSE format('its events do not tell how %s became %s', s.cause, s.status) END
  FROM told FULL JOIN subject s ON s.cause = told.cause
  WHERE told.cause IS NULL OR told.begun <> 1 OR NOT told.lawful OR told.reversed <> s.back::int OR told.net <> hashtext(s.status)
    OR (told.merchant_id, told.merchant_id_too) IS DISTINCT FROM (s.merchant_id, s.merchant_id);

  RETURN QUERY
  WITH subject AS (
    SELECT 'transaction:' || t.id AS cause, t.id AS transaction_id, NULL::bigint AS payout_id, t.merchant_id, t.payment_method,
      t.customer_phone AS phone, t.amount, CASE t.status WHEN 'success' THEN 'completed' ELSE t.status::text END AS status
    FROM transaction t WHERE t.transaction_type = 'deposit' AND t.id = ANY (ids)
    UNION ALL
    SELECT 'payout:' || p.id, NULL, p.id, p.merchant_id, p.payment_method, p.destination_phone, p.amount, p.status::text
    FROM payout p WHERE p.id = ANY (payout_ids)
  ), asked AS (
    SELECT r.*, coalesce('payout:' || r.payout_id, 'transaction:' || r.transaction_id) AS cause
    FROM operator_request r
    WHERE r.kind = 'disburse' AND r.recipient_id IS NULL AND (r.transaction_id = ANY (ids) OR r.payout_id = ANY (payout_ids))
  )
  SELECT 'statuses_agree_with_requests', coalesce(s.merchant_id, r.merchant_id), format('%s is %s, and %s',
    coalesce(s.cause, r.cause), coalesce(s.status, 'no payment out'),
    CASE WHEN r.id IS NULL THEN 'nothing was asked of the operator' ELSE format('its request over %s by %s is %s, asked about %s',
      r.amount, r.provider, r.state, coalesce(r.next_check_at::text, 'no more')) END)
  FROM subject s FULL JOIN asked r USING (cause)
  WHERE CASE
    -- What never began never left.
    WHEN r.id IS NULL THEN s.status NOT IN ('pending', 'cancelled') AND NOT (s.status = 'failed' AND NOT EXISTS (
      SELECT FROM movement m WHERE m.cause = s.cause AND m.step = 'reserve'))
    WHEN s.cause IS NULL THEN true
    ELSE (r.merchant_id = s.merchant_id AND r.amount = s.amount AND r.provider = s.payment_method AND r.phone = s.phone
      AND CASE s.status
        WHEN 'completed' THEN r.state = 'settled'
        WHEN 'reversed' THEN r.state = 'settled'
        WHEN 'failed' THEN r.state IN ('refused', 'closed') AND EXISTS (
          SELECT FROM movement m WHERE m.cause = s.cause AND m.step = 'reserve')
        -- Not decided: then somebody will ask.
        WHEN 'processing' THEN r.state IN ('sending', 'unsent', 'accepted', 'doubt') AND r.next_check_at IS NOT NULL
        ELSE false END) IS NOT TRUE END
  UNION ALL
  SELECT 'statuses_agree_with_requests', r.merchant_id,
    format('transaction:%s was to be paid out, and was asked for', r.transaction_id)
  FROM operator_request r JOIN transaction t ON t.id = r.transaction_id
  WHERE r.kind = 'collect' AND t.transaction_type <> 'pay' AND r.transaction_id = ANY (ids) AND t.id = ANY (ids);

  -- What a person approved is what is paid, and nothing begins without.
  RETURN QUERY
  SELECT 'approvals_cover_what_is_paid', p.merchant_id, format('payout:%s is %s, its approval %s', p.id, p.status,
    CASE WHEN p.approval = 'approved' THEN 'of something else' ELSE p.approval::text END)
  FROM payout p
  WHERE p.id = ANY (payout_ids) AND p.approval <> 'not_required'
    AND (p.status IN ('processing', 'completed', 'failed') AND p.approval <> 'approved'
      OR p.approval_digest IS DISTINCT FROM
        payout_digest(p.merchant_id, p.payment_method, p.destination_phone, p.amount, p.reference, p.scheduled_at));

  RETURN QUERY
  SELECT 'approvals_cover_what_is_paid', t.merchant_id, format('transaction:%s is %s, its approval %s', t.id, t.status,
    coalesce(CASE WHEN a.approval = 'approved' THEN 'of something else' ELSE a.approval::text END, 'not there'))
  FROM transaction t LEFT JOIN deposit_approval a ON a.transaction_id = t.id
  WHERE t.id = ANY (ids) AND t.transaction_type = 'deposit' AND (a.transaction_id IS NOT NULL OR t.status IN ('pending', 'cancelled'))
    AND (a.approval_digest = deposit_digest(t) AND CASE t.status WHEN 'pending' THEN a.approval = 'pending'
      WHEN 'cancelled' THEN a.approval <> 'approved' ELSE a.approval = 'approved' END) IS NOT TRUE;

  RETURN QUERY
  SELECT 'references_are_unique', p.merchant_id, format('payout:%s and payout:%s have the same reference', other.id, p.id)
  FROM payout p JOIN payout other
    ON other.reference = p.reference AND other.merchant_id = p.merchant_id AND other.id < p.id
  WHERE p.id = ANY (payout_ids);
END $$;

REVOKE EXECUTE ON FUNCTION deposit_digest, deposit_told(transaction, text, text), deposit_told(transaction, text, approval_status),
  asked_of(deposit_approval), guard_deposit_approval, guard_deposit_facts, guard_waiting_deposit, cancel_deposits, deposit_many
  FROM PUBLIC;
GRANT EXECUTE ON FUNCTION deposit_many TO payments_service;
