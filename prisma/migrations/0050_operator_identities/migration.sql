-- AlterTable
ALTER TABLE "transaction" ADD COLUMN     "correlation_id" UUID NOT NULL DEFAULT gen_random_uuid();

-- AlterTable
ALTER TABLE "payout" ADD COLUMN     "correlation_id" UUID NOT NULL DEFAULT gen_random_uuid();

-- AlterTable
ALTER TABLE "batch_recipient" ADD COLUMN     "correlation_id" UUID NOT NULL DEFAULT gen_random_uuid();

-- CreateTable
CREATE TABLE "operator_orphan" (
    "id" BIGSERIAL NOT NULL,
    "provider" "provider" NOT NULL,
    "kind" TEXT NOT NULL,
    "correlation_id" UUID,
    "operator_ref" TEXT NOT NULL,
    "client_ref" TEXT,
    "amount" BIGINT NOT NULL,
    "counterparty" TEXT,
    "posted_at" TIMESTAMPTZ(3) NOT NULL,
    "statement_day" DATE NOT NULL,
    "found_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resolved_at" TIMESTAMPTZ(3),
    "resolution" TEXT,

    CONSTRAINT "operator_orphan_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "operator_orphan_correlation_id_idx" ON "operator_orphan"("correlation_id");

-- CreateIndex
CREATE UNIQUE INDEX "operator_orphan_provider_operator_ref_kind_key" ON "operator_orphan"("provider", "operator_ref", "kind");

-- CreateIndex
CREATE UNIQUE INDEX "payout_correlation_id_key" ON "payout"("correlation_id");

-- CreateIndex
CREATE UNIQUE INDEX "batch_recipient_correlation_id_key" ON "batch_recipient"("correlation_id");

-- Written by hand: what the schema language cannot say.

-- Rows that were sent before keep the identity under which their operator knows them.
ALTER TABLE "transaction" DISABLE TRIGGER USER;
ALTER TABLE "payout" DISABLE TRIGGER USER;
ALTER TABLE "batch_recipient" DISABLE TRIGGER USER;
UPDATE "transaction" t SET correlation_id = r.correlation_id FROM operator_request r WHERE r.transaction_id = t.id;
UPDATE "payout" p SET correlation_id = r.correlation_id FROM operator_request r WHERE r.payout_id = p.id;
UPDATE "batch_recipient" b SET correlation_id = r.correlation_id FROM operator_request r WHERE r.recipient_id = b.id;
ALTER TABLE "transaction" ENABLE TRIGGER USER;
ALTER TABLE "payout" ENABLE TRIGGER USER;
ALTER TABLE "batch_recipient" ENABLE TRIGGER USER;

-- The identity never changes, in the row and in its request. The transaction needs no index of its own: its reference is unique,
-- and the index of `operator_request` refuses a second request under one identity.
CREATE TRIGGER "transaction_identity" BEFORE UPDATE OF correlation_id ON "transaction" FOR EACH ROW
  WHEN (OLD.correlation_id <> NEW.correlation_id) EXECUTE FUNCTION guard_facts();
CREATE TRIGGER "payout_identity" BEFORE UPDATE OF correlation_id ON "payout" FOR EACH ROW
  WHEN (OLD.correlation_id <> NEW.correlation_id) EXECUTE FUNCTION guard_facts();
CREATE TRIGGER "batch_recipient_identity" BEFORE UPDATE OF correlation_id ON "batch_recipient" FOR EACH ROW
  WHEN (OLD.correlation_id <> NEW.correlation_id) EXECUTE FUNCTION guard_facts();
CREATE TRIGGER "operator_request_identity" BEFORE UPDATE OF correlation_id ON "operator_request" FOR EACH ROW
  WHEN (OLD.correlation_id <> NEW.correlation_id) EXECUTE FUNCTION guard_facts();

ALTER TABLE "operator_orphan"
  ADD CONSTRAINT "operator_orphan_kind" CHECK ("kind" IN ('collect', 'disburse', 'reverse')),
  ADD CONSTRAINT "operator_orphan_amount" CHECK ("amount" >= 0),
  ADD CONSTRAINT "operator_orphan_resolved" CHECK (("resolved_at" IS NULL) = ("resolution" IS NULL));

-- An operator that repeats only our reference repeats the identity there: we send it as both.
CREATE FUNCTION name_orphan() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.client_ref ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN NEW.correlation_id := NEW.client_ref::uuid; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER "operator_orphan_named" BEFORE INSERT ON "operator_orphan" FOR EACH ROW WHEN (NEW.correlation_id IS NULL)
  EXECUTE FUNCTION name_orphan();
CREATE TRIGGER "operator_orphan_kept" BEFORE DELETE OR TRUNCATE ON "operator_orphan"
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
GRANT SELECT, INSERT, UPDATE ("resolved_at", "resolution") ON "operator_orphan" TO payments_service;
GRANT USAGE ON SEQUENCE "operator_orphan_id_seq" TO payments_service;

-- Derives an identity from another one and a number: the same for the same, also in another copy of the database. It has the
-- form of a random UUID (version 4), because operators accept no other.
CREATE FUNCTION identity_after(identity uuid, step int) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT (substr(h, 1, 12) || '4' || substr(h, 14, 3) || substr('89ab', 1 + (('x' || substr(h, 17, 1))::bit(4)::int & 3), 1)
    || substr(h, 18, 15))::uuid
  FROM encode(sha256(uuid_send(identity) || int4send(step)), 'hex') AS h
$$;

-- The first identity after `candidate`, itself included, that no row has. An identity derived from an `Idempotency-Key` may be
-- taken: 30 days after its first use the key may be used for another payment.
CREATE FUNCTION free_identity(candidate uuid) RETURNS uuid LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = public, pg_temp AS $$
BEGIN
  WHILE EXISTS (SELECT FROM operator_request r WHERE r.correlation_id = candidate)
    OR EXISTS (SELECT FROM payout p WHERE p.correlation_id = candidate) LOOP
    candidate := identity_after(candidate, 0);
  END LOOP;
  RETURN candidate;
END $$;

-- As before, with the identities that the caller derived, and what an orphan of the operator has is asked about, never sent.
DROP FUNCTION collect_many;
CREATE FUNCTION collect_many(
  merchant_ids int[], api_key_ids int[], api_key_versions int[], providers provider[], phones text[],
  amounts bigint[], refs text[], requests jsonb[], lifetime_ms bigint, fence_ms bigint, first_check_ms bigint,
  identities uuid[] DEFAULT NULL
) RETURNS TABLE (
  place int, outcome text, transaction_id bigint, request_id bigint, correlation_id uuid, created_at timestamptz,
  expires_at timestamptz, is_orphan boolean
) LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
  SELECT pg_advisory_xact_lock_shared(72707373, id)
  FROM (SELECT DISTINCT id FROM unnest(merchant_ids) AS id ORDER BY id) AS merchant;

  WITH clock AS MATERIALIZED (
    SELECT service_now() AS now
  ), item AS MATERIALIZED (
    -- Who may not ask gets no id, and takes no reference away from who may.
    SELECT i.*, known.active, orphan.provider IS NOT NULL AS is_orphan,
      CASE WHEN known.active AND (orphan.provider = i.provider) IS NOT FALSE THEN nextval('transaction_id_seq') END AS id
    FROM unnest(merchant_ids, api_key_ids, api_key_versions, providers, phones, amounts, refs, requests, identities)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, provider, phone, amount, reference, request, identity,
        place)
    LEFT JOIN LATERAL (
      SELECT true AS active FROM api_key k JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
      WHERE k.id = i.api_key_id AND k.merchant_id = i.merchant_id AND k.version = i.api_key_version AND k.revoked_at IS NULL
      LIMIT 1
    ) AS known ON true
    LEFT JOIN LATERAL (
      -- What the operator did before a restore is only asked about. One operator executed it, so no other one is asked for it.
      SELECT o.provider FROM operator_orphan o WHERE o.correlation_id = i.identity ORDER BY o.provider <> i.provider LIMIT 1
    ) AS orphan ON true
  ), made AS (
    INSERT INTO transaction (id, merchant_id, transaction_type, payment_method, customer_phone, amount, status, reference,
      request_data, expires_at, created_at, correlation_id)
    SELECT id, merchant_id, 'pay', provider, phone, amount, 'pending', reference, request,
      clock.now + lifetime_ms * interval '1 millisecond', clock.now, coalesce(identity, gen_random_uuid())
    FROM item, clock WHERE id IS NOT NULL ORDER BY merchant_id, reference, place
    ON CONFLICT (reference, merchant_id) DO NOTHING
    RETURNING id, merchant_id, payment_method, customer_phone, amount, status, reference, expires_at, created_at,
      correlation_id
  ), asked AS (
    INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount, phone, state,
      fence_until, next_check_at, accepted_at, created_at)
    SELECT made.merchant_id, made.id, payment_method, 'collect', correlation_id, made.amount, customer_phone,
      CASE WHEN is_orphan THEN 'accepted' ELSE 'sending' END::operator_request_state,
      now() + fence_ms * interval '1 millisecond',
      clock.now + CASE WHEN is_orphan THEN 0 ELSE first_check_ms END * interval '1 millisecond',
      CASE WHEN is_orphan THEN clock.now END, clock.now
    FROM made JOIN item ON item.id = made.id, clock ORDER BY made.id
    RETURNING id, transaction_id, correlation_id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT merchant_id, 'payment_pending', jsonb_build_object(
      'transaction_id', id, 'reference', reference, 'amount', amount, 'currency', 'XOF', 'payment_method', payment_method,
      'customer_phone', customer_phone, 'status', status), created_at
    FROM made ORDER BY id
  )
  SELECT item.place::int,
    CASE WHEN made.id IS NOT NULL THEN 'made' WHEN item.active THEN 'duplicate' ELSE 'unauthenticated' END,
    made.id, asked.id, asked.correlation_id, made.created_at, made.expires_at, item.is_orphan
  FROM item
  LEFT JOIN made ON made.id = item.id
  LEFT JOIN asked ON asked.transaction_id = made.id
  ORDER BY item.place
$$;

DROP FUNCTION collect_by_link;
CREATE FUNCTION collect_by_link(
  link int, operator provider, phone text, shown bigint, reference text, request jsonb, lifetime_ms bigint, fence_ms bigint,
  first_check_ms bigint, asked_max int[] DEFAULT '{}', asked_ms bigint[] DEFAULT '{}',
  identity uuid DEFAULT gen_random_uuid()
) RETURNS TABLE (
  outcome text, availability text, merchant_id int, transaction_id bigint, request_id bigint, correlation_id uuid, created_at timestamptz,
  expires_at timestamptz, free_in_ms bigint, is_orphan boolean
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz;
  used payment_link;
  can text;
  made transaction;
  free_at timestamptz;
  known boolean := EXISTS (SELECT FROM operator_orphan o WHERE o.correlation_id = identity);
BEGIN
  -- Before all else, so that nobody waits here who holds anything.
  PERFORM pg_advisory_xact_lock(72707377, hashtext(phone));
  PERFORM pg_advisory_xact_lock_shared(72707373, l.merchant_id) FROM payment_link l WHERE l.id = link;
  SELECT l.* INTO used FROM payment_link l JOIN merchant m ON m.id = l.merchant_id AND m.status = 'active'
  WHERE l.id = link FOR UPDATE OF l;
  IF NOT FOUND THEN RETURN; END IF;
  at := service_now() + (clock_timestamp() - now());
  can := link_availability(used);
  IF can <> 'open' OR used.amount <> shown THEN
    RETURN QUERY SELECT CASE can WHEN 'open' THEN 'changed' ELSE 'closed' END, can, used.merchant_id, NULL::bigint, NULL::bigint,
      NULL::uuid, NULL::timestamptz, NULL::timestamptz, NULL::bigint, false;
    RETURN;
  END IF;
  -- In each window the oldest of as many as it lets pass: one more may come when that one has left it.
  free_at := (
    SELECT max(oldest.created_at + w.ms * interval '1 millisecond') FROM unnest(asked_max, asked_ms) AS w (most, ms)
    CROSS JOIN LATERAL (
      SELECT t.created_at FROM transaction t
      WHERE t.customer_phone = phone AND t.payment_link_id IS NOT NULL AND t.status NOT IN ('success', 'reversed')
        AND t.created_at > at - w.ms * interval '1 millisecond'
      ORDER BY t.created_at DESC OFFSET w.most - 1 LIMIT 1) oldest);
  IF free_at IS NOT NULL THEN
    RETURN QUERY SELECT 'asked', can, used.merchant_id, NULL::bigint, NULL::bigint, NULL::uuid, NULL::timestamptz, NULL::timestamptz,
      ceil(extract(epoch FROM free_at - at) * 1000)::bigint, false;
    RETURN;
  END IF;
  UPDATE payment_link l SET open_count = l.open_count + 1 WHERE l.id = link;
  INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status, reference, request_data,
    expires_at, created_at, payment_link_id, correlation_id)
  VALUES (used.merchant_id, 'pay', operator, phone, shown, 'pending', $5, $6, at + lifetime_ms * interval '1 millisecond', at,
    link, identity)
  RETURNING * INTO made;
  INSERT INTO event (merchant_id, type, data, created_at)
  VALUES (made.merchant_id, 'payment_pending', jsonb_build_object(
    'transaction_id', made.id, 'reference', made.reference, 'amount', made.amount, 'currency', 'XOF',
    'payment_method', made.payment_method, 'customer_phone', made.customer_phone, 'status', made.status), at);
  RETURN QUERY
  WITH asked AS (
    INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount, phone, state,
      fence_until, next_check_at, accepted_at, created_at)
    VALUES (made.merchant_id, made.id, operator, 'collect', made.correlation_id, made.amount, phone,
      CASE WHEN known THEN 'accepted' ELSE 'sending' END::operator_request_state, now() + fence_ms * interval '1 millisecond',
      at + CASE WHEN known THEN 0 ELSE first_check_ms END * interval '1 millisecond', CASE WHEN known THEN at END, at)
    RETURNING id, correlation_id
  )
  SELECT 'made', can, made.merchant_id, made.id, a.id, a.correlation_id, made.created_at, made.expires_at, NULL::bigint, known
  FROM asked a;
END $$;

DROP FUNCTION deposit_many;
CREATE FUNCTION deposit_many(
  merchant_ids int[], api_key_ids int[], api_key_versions int[], providers provider[], phones text[], amounts bigint[],
  refs text[], requests jsonb[], refund_of_ids bigint[], fence_ms bigint, first_check_ms bigint,
  identities uuid[] DEFAULT NULL
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
    SELECT i.merchant_id, i.amount, i.refund_of_id, i.place, known.active, old.found, original.rest AS refundable,
      balance.available, orphan.provider IS NOT NULL AS is_orphan, orphan.provider <> i.provider AS is_elsewhere,
      (SELECT service_now() + (clock_timestamp() - now())) AS now,
      EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) AS halted
    FROM unnest(merchant_ids, api_key_ids, api_key_versions, providers, amounts, refs, refund_of_ids, identities)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, provider, amount, reference, refund_of_id, identity, place)
    LEFT JOIN LATERAL (
      SELECT true AS active FROM api_key k JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
      WHERE k.id = i.api_key_id AND k.merchant_id = i.merchant_id AND k.version = i.api_key_version AND k.revoked_at IS NULL
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
        SELECT coalesce(sum(CASE r.status WHEN 'success' THEN r.settled_amount WHEN 'processing' THEN r.amount END), 0)
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
      IF item.is_orphan THEN orphans := orphans || ids[item.place]; END IF;
      IF item.refund_of_id IS NOT NULL THEN refunded := refunded || item.refund_of_id; END IF;
    END IF;
  END LOOP;
  FOR made IN
    WITH made AS (
      -- A collection may take the reference at this moment: who is there first has it.
      INSERT INTO transaction (id, merchant_id, transaction_type, payment_method, customer_phone, amount, status, reference,
        request_data, refund_of_id, created_at, correlation_id)
      SELECT i.id, i.merchant_id, 'deposit', i.provider, i.phone, i.amount, 'processing', i.reference, i.request,
        i.refund_of_id, at, coalesce(i.identity, gen_random_uuid())
      FROM unnest(ids, merchant_ids, providers, phones, amounts, refs, requests, refund_of_ids, identities)
        AS i (id, merchant_id, provider, phone, amount, reference, request, refund_of_id, identity)
      WHERE i.id IS NOT NULL ORDER BY i.merchant_id, i.reference, i.id
      ON CONFLICT (reference, merchant_id) DO NOTHING
      RETURNING id, merchant_id, payment_method, customer_phone, amount, status, reference, refund_of_id, correlation_id
    ), reserved AS (
      INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
      SELECT merchant_id, 'transaction:' || id, 'reserve', 'available', 'reserved', amount, at FROM made ORDER BY merchant_id, id
    ), told AS (
      INSERT INTO event (merchant_id, type, data, created_at)
      SELECT merchant_id, 'deposit_processing', jsonb_strip_nulls(jsonb_build_object(
        'transaction_id', id, 'reference', reference, 'amount', amount, 'currency', 'XOF', 'payment_method', payment_method,
        'customer_phone', customer_phone, 'status', status, 'refund_of', refund_of_id)), at
      FROM made ORDER BY merchant_id, id
    ), asked AS (
      INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount, phone, state,
        fence_until, next_check_at, accepted_at, created_at)
      SELECT merchant_id, id, payment_method, 'disburse', correlation_id, amount, customer_phone,
        CASE WHEN id = ANY (orphans) THEN 'accepted' ELSE 'sending' END::operator_request_state,
        now() + fence_ms * interval '1 millisecond',
        at + CASE WHEN id = ANY (orphans) THEN 0 ELSE first_check_ms END * interval '1 millisecond',
        CASE WHEN id = ANY (orphans) THEN at END, at
      FROM made ORDER BY id
      RETURNING id, transaction_id, correlation_id
    )
    SELECT * FROM asked
  LOOP
    place := array_position(ids, made.transaction_id);
    request_ids[place] := made.id;
    correlation_ids[place] := made.correlation_id;
  END LOOP;
  FOR nth IN 1 .. cardinality(merchant_ids) LOOP
    place := nth;
    outcome := outcomes[nth];
    IF outcome = 'made' AND request_ids[nth] IS NULL THEN
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
    RETURN NEXT;
  END LOOP;
END $$;

DROP FUNCTION create_payouts;
CREATE FUNCTION create_payouts(
  merchant_ids int[], api_key_ids int[], api_key_versions int[], providers provider[], phones text[], amounts bigint[],
  refs text[], requests jsonb[], scheduled_ats timestamptz[], beneficiary_ids int[], beneficiary_names text[], makers text[],
  approval_ms bigint, identities uuid[] DEFAULT NULL
) RETURNS TABLE (place int, outcome text, payout_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  -- As the columns keep it: what goes at once is due at once.
  at timestamptz := date_trunc('milliseconds', service_now());
  reserved_at timestamptz;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(72707373, id)
  FROM (SELECT DISTINCT id FROM unnest(merchant_ids) AS id ORDER BY id) AS merchant;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchant_ids) ORDER BY b.merchant_id FOR UPDATE;
  reserved_at := service_now() + (clock_timestamp() - now());
  RETURN QUERY
  WITH RECURSIVE halt AS MATERIALIZED (
    -- Read after the locks and in the statement that moves: whoever waited meets a halt that came meanwhile.
    SELECT EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) AS on
  ), item AS MATERIALIZED (
    SELECT i.*, i.scheduled::timestamptz(3) AS scheduled_at, known.ask IS NOT NULL AS allowed, known.ask,
      old.found IS NOT NULL OR elsewhere.found IS NOT NULL AS old
    FROM unnest(merchant_ids, api_key_ids, api_key_versions, providers, phones, amounts, refs, requests, scheduled_ats,
      beneficiary_ids, beneficiary_names, makers, identities)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, provider, phone, amount, reference, request, scheduled,
        beneficiary_id, beneficiary_name, maker, identity, place)
    LEFT JOIN LATERAL (
      SELECT m.payouts_require_approval AND i.amount >= m.approval_threshold AS ask
      FROM api_key k JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
      WHERE k.id = i.api_key_id AND k.merchant_id = i.merchant_id AND k.version = i.api_key_version AND k.revoked_at IS NULL
      LIMIT 1
    ) AS known ON true
    LEFT JOIN LATERAL (
      -- Said so, only the index that identifies it can answer, whatever the planner believes of the others.
      SELECT true AS found FROM payout p
      WHERE (p.reference, p.merchant_id) BETWEEN (i.reference, i.merchant_id) AND (i.reference, i.merchant_id) LIMIT 1
    ) AS old ON true
    LEFT JOIN LATERAL (
      -- Another operator executed it before a restore.
      SELECT true AS found FROM operator_orphan o WHERE o.correlation_id = i.identity AND o.provider <> i.provider LIMIT 1
    ) AS elsewhere ON true
  ), ranked AS MATERIALIZED (
    -- Of equal references in one call the first is judged.
    SELECT item.*, first_value(item.place) OVER (PARTITION BY item.merchant_id, item.reference, item.allowed ORDER BY item.place)
      AS first_place
    FROM item
  ), judged AS MATERIALIZED (
    SELECT r.*, CASE
        WHEN NOT r.allowed THEN 'unauthenticated'
        WHEN r.old THEN 'duplicate'
        WHEN r.first_place <> r.place THEN 'repeated'
        WHEN r.scheduled_at IS NULL AND halt.on THEN 'halted'
      END AS verdict
    FROM ranked r, halt
  ), queue AS MATERIALIZED (
    SELECT j.merchant_id, j.amount, j.place, row_number() OVER (PARTITION BY j.merchant_id ORDER BY j.place) AS nth
    FROM judged j WHERE j.verdict IS NULL AND j.scheduled_at IS NULL
  ), walk AS (
    -- One step per item of a merchant: what is covered leaves less for the next.
    SELECT b.merchant_id, 0::bigint AS nth, b.available AS rest, NULL::bigint AS place, false AS covered
    FROM merchant_balance b WHERE b.merchant_id = ANY (merchant_ids)
    UNION ALL
    SELECT w.merchant_id, q.nth, CASE WHEN q.amount > w.rest THEN w.rest ELSE w.rest - q.amount END, q.place, q.amount <= w.rest
    FROM walk w JOIN queue q ON q.merchant_id = w.merchant_id AND q.nth = w.nth + 1
  ), chosen AS MATERIALIZED (
    SELECT j.*, nextval('payout_id_seq') AS id
    FROM judged j LEFT JOIN walk w ON w.place = j.place
    WHERE j.verdict IS NULL AND (j.scheduled_at IS NOT NULL OR w.covered)
  ), made AS (
    -- Whoever makes payouts of a merchant holds its balance: nobody takes a reference meanwhile.
    INSERT INTO payout (id, merchant_id, payment_method, destination_phone, amount, reference, scheduled_at, send_at, approval,
      approval_digest, approval_expires_at, maker, beneficiary_id, beneficiary_name, request_data, created_at,
      correlation_id)
    SELECT id, merchant_id, provider, phone, amount, reference, scheduled_at, coalesce(scheduled_at, at),
      CASE WHEN ask THEN 'pending' ELSE 'not_required' END::approval_status,
      CASE WHEN ask THEN payout_digest(merchant_id, provider, phone, amount, reference, scheduled_at) END,
      CASE WHEN ask THEN at + approval_ms * interval '1 millisecond' END,
      maker, beneficiary_id, beneficiary_name, request, at, coalesce(identity, gen_random_uuid())
    FROM chosen ORDER BY merchant_id, id
    RETURNING payout.*, payout AS self
  ), reserved AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT m.merchant_id, 'payout:' || m.id, 'reserve', 'available', 'reserved', m.amount, reserved_at
    FROM made m WHERE m.scheduled_at IS NULL ORDER BY m.merchant_id, m.id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT m.merchant_id, 'payout_pending', payout_told(m.self, NULL), at FROM made m ORDER BY m.merchant_id, m.id
  ), ended AS MATERIALIZED (
    SELECT j.place, j.first_place, made.id, coalesce(j.verdict, CASE WHEN made.id IS NULL THEN 'short' ELSE 'made' END) AS outcome
    FROM judged j
    LEFT JOIN chosen c ON c.place = j.place
    LEFT JOIN made ON made.id = c.id
  )
  SELECT e.place::int, CASE WHEN e.outcome <> 'repeated' THEN e.outcome WHEN first.outcome = 'made' THEN 'duplicate'
      ELSE first.outcome END, e.id
  FROM ended e JOIN ended first ON first.place = e.first_place
  ORDER BY e.place;
END $$;

-- As before, but that the identity is the row's, and what an orphan of the operator has is asked about: its outcome is `asked`.
CREATE OR REPLACE FUNCTION begin_payouts(operator provider, take int, fence_ms bigint, first_check_ms bigint)
RETURNS TABLE (
  outcome text, payout_id bigint, request_id bigint, correlation_id uuid, merchant_id int, amount bigint, phone text,
  request jsonb, created_at timestamptz
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  chosen bigint[];
  merchants int[];
  item record;
  merchant int;
  -- What the merchant has left.
  rest bigint;
  ids bigint[];
  covered boolean[];
BEGIN
  IF EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) THEN RETURN; END IF;
  SELECT array_agg(c.id), array_agg(DISTINCT c.merchant_id) INTO chosen, merchants
  FROM (
    SELECT turn.id, turn.merchant_id
    FROM (
      SELECT due.*, row_number() OVER (PARTITION BY due.merchant_id ORDER BY due.send_at, due.id) AS nth
      FROM (
        SELECT p.id, p.merchant_id, p.send_at
        FROM payout p
        WHERE p.payment_method = operator AND p.status = 'pending' AND p.approval IN ('not_required', 'approved')
          AND p.send_at <= at AND p.merchant_id NOT IN (SELECT m.id FROM merchant m WHERE m.status <> 'active')
          AND (p.scheduled_at IS NOT NULL OR p.merchant_id NOT IN (
            SELECT b.merchant_id FROM merchant_balance b WHERE b.receivable > 0))
        ORDER BY p.send_at, p.id LIMIT 512
      ) AS due
    ) AS turn
    ORDER BY turn.nth, turn.send_at, turn.id LIMIT take
  ) AS c;
  IF chosen IS NULL THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock_shared(72707373, id) FROM (SELECT id FROM unnest(merchants) AS id ORDER BY id) AS merchant;
  -- What somebody else begins or cancels at this moment is theirs.
  SELECT array_agg(held.id), array_agg(DISTINCT held.merchant_id) INTO chosen, merchants
  FROM (
    SELECT p.id, p.merchant_id FROM payout p
    WHERE p.id = ANY (chosen) AND p.status = 'pending' AND p.approval IN ('not_required', 'approved')
    ORDER BY p.id FOR UPDATE SKIP LOCKED
  ) AS held;
  IF chosen IS NULL THEN RETURN; END IF;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchants) ORDER BY b.merchant_id FOR UPDATE;
  -- Read after the locks: whoever waited meets a halt that came meanwhile.
  FOR item IN
    SELECT p.id, p.merchant_id, p.amount, p.scheduled_at IS NOT NULL AS asks, balance.available,
      (SELECT service_now() + (clock_timestamp() - now())) AS now
    FROM payout p
    JOIN LATERAL (SELECT FROM merchant m WHERE m.id = p.merchant_id AND m.status = 'active' LIMIT 1) AS active ON true
    JOIN LATERAL (
      SELECT b.available FROM merchant_balance b
      WHERE b.merchant_id = p.merchant_id AND (p.scheduled_at IS NOT NULL OR b.receivable = 0) LIMIT 1) AS balance ON true
    WHERE p.id = ANY (chosen) AND NOT EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL)
    ORDER BY p.merchant_id, p.send_at, p.id
  LOOP
    at := item.now;
    -- What is covered leaves less for the next.
    IF merchant IS DISTINCT FROM item.merchant_id THEN
      merchant := item.merchant_id;
      rest := item.available;
    END IF;
    ids := ids || item.id;
    covered := covered || (NOT item.asks OR item.amount <= rest);
    IF item.asks AND item.amount <= rest THEN rest := rest - item.amount; END IF;
  END LOOP;
  RETURN QUERY
  WITH changed AS (
    UPDATE payout p
    SET status = CASE WHEN j.covered THEN 'processing' ELSE 'failed' END::payout_status,
      failure_reason = CASE WHEN NOT j.covered THEN 'INSUFFICIENT_BALANCE' END,
      evidence_source = CASE WHEN NOT j.covered THEN 'service' END,
      settled_at = CASE WHEN NOT j.covered THEN at END
    FROM unnest(ids, covered) AS j (id, covered) WHERE p.id = ANY (ids) AND p.id = j.id
    RETURNING p.*, p AS self
  ), reserved AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'payout:' || c.id, 'reserve', 'available', 'reserved', c.amount, at
    FROM changed c WHERE c.status = 'processing' AND c.scheduled_at IS NOT NULL ORDER BY c.merchant_id, c.id
  ), asked AS (
    INSERT INTO operator_request (merchant_id, payout_id, provider, kind, correlation_id, amount, phone, state,
      fence_until, next_check_at, accepted_at, created_at)
    SELECT c.merchant_id, c.id, c.payment_method, 'disburse', c.correlation_id, c.amount, c.destination_phone,
      CASE WHEN orphan.found THEN 'accepted' ELSE 'sending' END::operator_request_state,
      now() + fence_ms * interval '1 millisecond',
      at + CASE WHEN orphan.found THEN 0 ELSE first_check_ms END * interval '1 millisecond',
      CASE WHEN orphan.found THEN at END, at
    FROM changed c
    LEFT JOIN LATERAL (
      -- What the operator did before a restore is only asked about.
      SELECT true AS found FROM operator_orphan o WHERE o.correlation_id = c.correlation_id LIMIT 1
    ) AS orphan ON true
    WHERE c.status = 'processing' ORDER BY c.id
    RETURNING id, payout_id, correlation_id, created_at, state
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id, 'payout_' || c.status, payout_told(c.self, 'pending'), at FROM changed c ORDER BY c.merchant_id, c.id
  )
  SELECT CASE WHEN c.status <> 'processing' THEN 'short' WHEN a.state = 'accepted' THEN 'asked' ELSE 'begun' END,
    c.id, a.id, a.correlation_id, c.merchant_id, c.amount,
    c.destination_phone, c.request_data, a.created_at
  FROM changed c LEFT JOIN asked a ON a.payout_id = c.id
  ORDER BY c.send_at, c.id;
END $$;

-- As before, and their identities are derived from `seed` and their places.
DROP FUNCTION write_recipients;
CREATE FUNCTION write_recipients(batch int, names text[], accounts text[], amounts bigint[], methods provider[], added_by int,
  seed uuid DEFAULT gen_random_uuid())
RETURNS batch LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  grown batch;
BEGIN
  WHILE EXISTS (SELECT FROM batch_recipient r WHERE r.correlation_id = identity_after(seed, 1)) LOOP
    seed := identity_after(seed, 0);
  END LOOP;
  INSERT INTO batch_recipient (merchant_id, batch_id, name, account, amount, payment_method, correlation_id)
  SELECT b.merchant_id, b.id, i.name, i.account, i.amount, i.method, identity_after(seed, i.place::int)
  FROM batch b, unnest(names, accounts, amounts, methods) WITH ORDINALITY AS i (name, account, amount, method, place)
  WHERE b.id = $1 ORDER BY i.place;
  UPDATE batch b
  SET recipient_count = b.recipient_count + cardinality(amounts),
    total_amount = b.total_amount + coalesce((SELECT sum(a) FROM unnest(amounts) AS a), 0),
    maker_member_ids = CASE WHEN added_by = ANY (b.maker_member_ids) OR added_by IS NULL THEN b.maker_member_ids
      ELSE b.maker_member_ids || added_by END
  WHERE b.id = $1 RETURNING b.* INTO grown;
  RETURN grown;
END $$;

DROP FUNCTION create_batch;
CREATE FUNCTION create_batch(
  merchant int, credential int, credential_version int, maker text, effect text, title text, method provider,
  names text[], accounts text[], amounts bigint[], methods provider[], retried int DEFAULT NULL,
  seed uuid DEFAULT gen_random_uuid()
) RETURNS TABLE (outcome text, batch_id int) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  old batch;
  made batch;
BEGIN
  IF NOT may_act(merchant, credential, credential_version) THEN
    RETURN QUERY SELECT 'unauthenticated', NULL::int;
    RETURN;
  END IF;
  SELECT b.* INTO made FROM batch b WHERE b.made_for = effect AND b.merchant_id = merchant;
  IF FOUND THEN
    RETURN QUERY SELECT 'repeated', made.id;
    RETURN;
  END IF;
  IF retried IS NOT NULL THEN
    SELECT b.* INTO old FROM batch b WHERE b.id = retried AND b.merchant_id = merchant FOR UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    IF old.processed_at IS NULL OR old.failed_count = 0 THEN
      RETURN QUERY SELECT CASE WHEN old.processed_at IS NULL THEN 'open' ELSE 'nothing' END, old.id;
      RETURN;
    END IF;
    SELECT b.* INTO made FROM batch b
    WHERE b.retry_of_id = retried AND (b.status <> 'cancelled' OR b.succeeded_count + b.failed_count > 0);
    IF FOUND THEN
      RETURN QUERY SELECT 'retried', made.id;
      RETURN;
    END IF;
    SELECT array_agg(r.name ORDER BY r.id), array_agg(r.account ORDER BY r.id), array_agg(r.amount ORDER BY r.id),
      array_agg(r.payment_method ORDER BY r.id)
      INTO names, accounts, amounts, methods
    FROM batch_recipient r WHERE r.batch_id = retried AND r.status = 'failed';
  END IF;
  INSERT INTO batch (merchant_id, title, payment_method, maker, made_for, retry_of_id, created_at)
  VALUES (merchant, coalesce($6, old.title), $7, $4, effect, retried, at)
  ON CONFLICT (made_for, merchant_id) DO NOTHING RETURNING * INTO made;
  IF NOT FOUND THEN
    RETURN QUERY SELECT 'repeated', b.id FROM batch b WHERE b.made_for = effect AND b.merchant_id = merchant;
    RETURN;
  END IF;
  made := write_recipients(made.id, names, accounts, amounts, methods, member_behind(merchant, maker), seed);
  INSERT INTO event (merchant_id, type, data, created_at) VALUES (merchant, 'batch_draft', batch_told(made, NULL), at);
  RETURN QUERY SELECT 'made', made.id;
END $$;

DROP FUNCTION add_recipients;
CREATE FUNCTION add_recipients(
  merchant int, credential int, credential_version int, adder text, effect text, batch int,
  names text[], accounts text[], amounts bigint[], methods provider[], count_max int,
  seed uuid DEFAULT gen_random_uuid()
) RETURNS TABLE (outcome text, status batch_status, recipient_count int) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  draft batch;
  refused text;
BEGIN
  IF NOT may_act(merchant, credential, credential_version) THEN
    RETURN QUERY SELECT 'unauthenticated', NULL::batch_status, NULL::int;
    RETURN;
  END IF;
  SELECT b.* INTO draft FROM batch b WHERE b.id = $6 AND b.merchant_id = $1 FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  refused := CASE WHEN effect = ANY (draft.added_for) THEN 'repeated' WHEN draft.status <> 'draft' THEN 'conflict'
    WHEN draft.recipient_count + cardinality(amounts) > count_max THEN 'too_many' END;
  IF refused IS NULL THEN
    -- Choice: a repetition comes soon; the last hundred are known again.
    IF effect IS NOT NULL THEN
      UPDATE batch b SET added_for = (effect || b.added_for)[:100] WHERE b.id = $6;
    END IF;
    draft := write_recipients($6, names, accounts, amounts, methods, member_behind(merchant, adder), seed);
    INSERT INTO event (merchant_id, type, data, created_at)
    VALUES (merchant, 'batch_draft', batch_told(draft, 'draft'), service_now());
  END IF;
  RETURN QUERY SELECT coalesce(refused, 'added'), draft.status, draft.recipient_count;
END $$;

-- As before, but that the identity is the row's, and what an orphan of the operator has is asked about (`is_orphan`).
DROP FUNCTION begin_recipients;
CREATE FUNCTION begin_recipients(
  open provider[], rooms int[], busy_batches int[], busy_operators provider[], batch_max int,
  fence_ms bigint, first_check_ms bigint, own bigint[], call_ms bigint
) RETURNS TABLE (
  recipient_id bigint, batch_id int, merchant_id int, operator provider, request_id bigint, correlation_id uuid, amount bigint,
  phone text, created_at timestamptz, is_orphan boolean
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  chosen bigint[];
  batches int[];
  merchants int[];
  others record;
BEGIN
  IF EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) THEN RETURN; END IF;
  SELECT coalesce(array_agg(c.batch_id), '{}') AS batches, coalesce(array_agg(c.operator), '{}') AS operators INTO others
  FROM recipient_calls(fence_ms, call_ms, own) AS c;
  busy_batches := busy_batches || others.batches;
  busy_operators := busy_operators || others.operators;
  SELECT array_agg(c.id), array_agg(DISTINCT c.batch_id), array_agg(DISTINCT c.merchant_id) INTO chosen, batches, merchants
  FROM (
    SELECT turn.*, row_number() OVER (
      PARTITION BY turn.operator ORDER BY turn.nth, turn.merchant_turn_at NULLS FIRST, turn.id) AS place
    FROM (
      SELECT due.id, due.batch_id, due.merchant_id, due.operator, due.room,
        max(due.turn_at) OVER (PARTITION BY due.merchant_id) AS merchant_turn_at,
        row_number() OVER (PARTITION BY due.merchant_id ORDER BY due.nth, due.turn_at NULLS FIRST, due.batch_id) AS nth
      FROM (
        SELECT r.id, b.id AS batch_id, b.merchant_id, b.turn_at, here.operator, here.room,
          batch_max - going.n AS free, row_number() OVER (PARTITION BY b.id ORDER BY r.nth, here.operator) AS nth
        FROM batch b
        CROSS JOIN LATERAL (
          SELECT count(*)::int AS n FROM unnest(busy_batches) AS u (id) WHERE u.id = b.id
        ) AS going
        CROSS JOIN LATERAL (
          -- The operators with somebody to be sent; each has an equal share.
          SELECT o.operator, o.room, batch_max / (count(*) OVER ())::int - (
              SELECT count(*) FROM unnest(busy_batches, busy_operators) AS u (id, operator)
              WHERE u.id = b.id AND u.operator = o.operator)::int AS share
          FROM unnest(open, rooms) AS o (operator, room)
          -- Of each the first one, by the index: what EXISTS asks, a plan made while it was empty reads whole for each batch.
          WHERE (
            SELECT r.id FROM batch_recipient r
            WHERE (r.payment_method, r.batch_id) BETWEEN (o.operator, b.id) AND (o.operator, b.id) AND r.sent_at IS NULL
            ORDER BY r.payment_method, r.batch_id, r.id LIMIT 1) IS NOT NULL
        ) AS here
        CROSS JOIN LATERAL (
          SELECT next.id, row_number() OVER (ORDER BY next.id) AS nth
          FROM (
            -- Said so, only the index of what is unsent can answer, whatever the planner believes of the others.
            SELECT r.id FROM batch_recipient r
            WHERE (r.payment_method, r.batch_id) BETWEEN (here.operator, b.id) AND (here.operator, b.id) AND r.sent_at IS NULL
            ORDER BY r.payment_method, r.batch_id, r.id LIMIT greatest(0, least(here.room, here.share))
          ) AS next
        ) AS r
        WHERE b.status = 'processing' AND b.cancel_asked_at IS NULL
          AND b.merchant_id NOT IN (SELECT m.id FROM merchant m WHERE m.status <> 'active')
          AND b.merchant_id NOT IN (SELECT o.merchant_id FROM merchant_balance o WHERE o.receivable > 0)
      ) AS due
      WHERE due.nth <= due.free
    ) AS turn
  ) AS c
  WHERE c.place <= c.room - cardinality(array_positions(others.operators, c.operator));
  IF chosen IS NULL THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock_shared(72707373, id) FROM (SELECT id FROM unnest(merchants) AS id ORDER BY id) AS merchant;
  PERFORM FROM batch b WHERE b.id = ANY (batches) ORDER BY b.id FOR UPDATE;
  -- What was sent again meanwhile has its place, and the next look sees it.
  IF (SELECT count(*) FROM recipient_calls(fence_ms, call_ms, own) AS c WHERE c.batch_id = ANY (batches)) >
    (SELECT count(*) FROM unnest(others.batches) AS o (batch_id) WHERE o.batch_id = ANY (batches)) THEN RETURN; END IF;
  RETURN QUERY
  WITH changed AS (
    UPDATE batch_recipient r SET status = 'processing', sent_at = at
    -- Read after the locks and in the statement that takes: whoever waited meets what came meanwhile.
    FROM batch b JOIN merchant m ON m.id = b.merchant_id AND m.status = 'active'
    -- Not by what is unsent: its index would be read whole, by a plan made while that was empty.
    WHERE r.id = ANY (chosen) AND r.status = 'pending'
      AND b.id = r.batch_id AND b.id = ANY (batches) AND b.status = 'processing' AND b.cancel_asked_at IS NULL
      AND NOT EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL)
      AND NOT EXISTS (SELECT FROM merchant_balance o WHERE o.merchant_id = b.merchant_id AND o.receivable > 0)
    RETURNING r.*
  ), asked AS (
    INSERT INTO operator_request (merchant_id, recipient_id, provider, kind, correlation_id, amount, phone, state,
      fence_until, next_check_at, accepted_at, created_at)
    SELECT c.merchant_id, c.id, c.payment_method, 'disburse', c.correlation_id, c.amount, c.account,
      CASE WHEN orphan.found THEN 'accepted' ELSE 'sending' END::operator_request_state,
      now() + fence_ms * interval '1 millisecond',
      at + CASE WHEN orphan.found THEN 0 ELSE first_check_ms END * interval '1 millisecond',
      CASE WHEN orphan.found THEN at END, at
    FROM changed c
    LEFT JOIN LATERAL (
      -- What the operator did before a restore is only asked about.
      SELECT true AS found FROM operator_orphan o WHERE o.correlation_id = c.correlation_id LIMIT 1
    ) AS orphan ON true
    ORDER BY c.id
    RETURNING id, recipient_id, correlation_id, created_at, state
  ), counted AS (
    UPDATE batch b SET processing_count = b.processing_count + c.n, turn_at = clock_timestamp()
    FROM (SELECT c.batch_id, count(*)::int AS n FROM changed c GROUP BY c.batch_id) AS c
    WHERE b.id = ANY (batches) AND b.id = c.batch_id
  )
  SELECT c.id, c.batch_id, c.merchant_id, c.payment_method, a.id, a.correlation_id, c.amount, c.account, a.created_at,
    a.state = 'accepted'
  FROM changed c JOIN asked a ON a.recipient_id = c.id ORDER BY c.id;
END $$;

REVOKE EXECUTE ON FUNCTION name_orphan, identity_after, free_identity, collect_many, collect_by_link, deposit_many,
  create_payouts, write_recipients, create_batch, add_recipients, begin_recipients FROM PUBLIC;
GRANT EXECUTE ON FUNCTION free_identity, collect_many, collect_by_link, deposit_many, create_payouts, create_batch,
  add_recipients, begin_recipients TO payments_service;
