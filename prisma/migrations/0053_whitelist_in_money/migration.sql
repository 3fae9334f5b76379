-- Written by hand. The statements that move money judge the address of the caller by the merchant's whitelist as it is now.

-- An address or range, IPv4 also where it is written as IPv6; null where the text is neither, as in `ip-whitelist.ts`.
CREATE FUNCTION network_of(entry text) RETURNS inet LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  network inet;
BEGIN
  network := entry::inet;
  IF family(network) = 6 AND network <<= '::ffff:0.0.0.0/96' THEN
    RETURN set_masklen(('0.0.0.0'::inet + (network - '::ffff:0.0.0.0'::inet)), masklen(network) - 96);
  END IF;
  RETURN network;
EXCEPTION WHEN invalid_text_representation THEN RETURN NULL;
END $$;

-- Whether the whitelist lets the address in; an empty one lets all in. An address that is not known (null) is in no range.
CREATE FUNCTION whitelist_allows(whitelist text[], address text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT cardinality(whitelist) = 0
    OR EXISTS (SELECT FROM unnest(whitelist) AS entry WHERE network_of(entry) >>= network_of(address))
$$;

-- A new whitelist waits for the statements that judged by the old one, as the end of a key does.
CREATE TRIGGER "merchant_whitelist" BEFORE UPDATE OF ip_whitelist ON "merchant" FOR EACH ROW
  WHEN (OLD.ip_whitelist IS DISTINCT FROM NEW.ip_whitelist) EXECUTE FUNCTION end_access('id');

-- As before, with the addresses of the callers. Without them (an older release asks) only the key and the account are judged.
DROP FUNCTION collect_many;
CREATE FUNCTION collect_many(
  merchant_ids int[], api_key_ids int[], api_key_versions int[], providers provider[], phones text[],
  amounts bigint[], refs text[], requests jsonb[], lifetime_ms bigint, fence_ms bigint, first_check_ms bigint,
  identities uuid[] DEFAULT NULL, addresses text[] DEFAULT NULL
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
    FROM unnest(merchant_ids, api_key_ids, api_key_versions, providers, phones, amounts, refs, requests, identities,
      addresses)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, provider, phone, amount, reference, request, identity,
        address, place)
    LEFT JOIN LATERAL (
      SELECT true AS active FROM api_key k JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
      WHERE k.id = i.api_key_id AND k.merchant_id = i.merchant_id AND k.version = i.api_key_version AND k.revoked_at IS NULL
        AND (addresses IS NULL OR whitelist_allows(m.ip_whitelist, i.address))
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

DROP FUNCTION deposit_many;
CREATE FUNCTION deposit_many(
  merchant_ids int[], api_key_ids int[], api_key_versions int[], providers provider[], phones text[], amounts bigint[],
  refs text[], requests jsonb[], refund_of_ids bigint[], fence_ms bigint, first_check_ms bigint,
  identities uuid[] DEFAULT NULL, addresses text[] DEFAULT NULL
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
    FROM unnest(merchant_ids, api_key_ids, api_key_versions, providers, amounts, refs, refund_of_ids, identities, addresses)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, provider, amount, reference, refund_of_id, identity,
        address, place)
    LEFT JOIN LATERAL (
      SELECT true AS active FROM api_key k JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
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
  approval_ms bigint, identities uuid[] DEFAULT NULL, addresses text[] DEFAULT NULL
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
      beneficiary_ids, beneficiary_names, makers, identities, addresses)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, provider, phone, amount, reference, request, scheduled,
        beneficiary_id, beneficiary_name, maker, identity, address, place)
    LEFT JOIN LATERAL (
      SELECT m.payouts_require_approval AND i.amount >= m.approval_threshold AS ask
      FROM api_key k JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
      WHERE k.id = i.api_key_id AND k.merchant_id = i.merchant_id AND k.version = i.api_key_version AND k.revoked_at IS NULL
        AND (addresses IS NULL OR whitelist_allows(m.ip_whitelist, i.address))
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

-- As before, with the address of the caller; an empty one is not judged.
DROP FUNCTION may_act;
CREATE FUNCTION may_act(merchant int, credential int, credential_version int, address text DEFAULT '')
RETURNS boolean LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(72707373, merchant);
  RETURN EXISTS (
    SELECT FROM api_key k JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
    WHERE k.id = credential AND k.merchant_id = merchant AND k.version = credential_version AND k.revoked_at IS NULL
      AND (address = '' OR whitelist_allows(m.ip_whitelist, address)) IS TRUE);
END $$;

DROP FUNCTION person_of;
CREATE FUNCTION person_of(merchant int, credential int, credential_version int, address text DEFAULT '')
RETURNS TABLE (member_id int, role member_role) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(72707373, merchant);
  RETURN QUERY
  SELECT t.id, t.role FROM api_key k
  JOIN team_member t ON t.id = k.member_id AND t.merchant_id = k.merchant_id AND t.status = 'active'
  JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
  WHERE k.id = credential AND k.merchant_id = merchant AND k.version = credential_version AND k.kind = 'session'
    AND k.revoked_at IS NULL AND k.expires_at > now()
    AND (address = '' OR whitelist_allows(m.ip_whitelist, address)) IS TRUE;
END $$;

DROP FUNCTION process_batch;
CREATE FUNCTION process_batch(
  merchant int, credential int, credential_version int, asker text, batch int, approval_ms bigint, connected provider[],
  payment_max bigint, operators provider[], token uuid, day_max bigint, address text DEFAULT ''
) RETURNS TABLE (outcome text, status batch_status) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  at timestamptz;
  draft batch;
  asked_by int := member_behind(merchant, asker);
  largest bigint;
  methods provider[];
  free bigint;
  asks boolean;
  required smallint;
  refused text;
BEGIN
  IF NOT may_act(merchant, credential, credential_version, address) THEN
    RETURN QUERY SELECT 'unauthenticated', NULL::batch_status;
    RETURN;
  END IF;
  SELECT b.* INTO draft FROM batch b WHERE b.id = $5 AND b.merchant_id = $1 FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  SELECT max(r.amount), array_agg(DISTINCT r.payment_method) INTO largest, methods FROM batch_recipient r WHERE r.batch_id = $5;
  SELECT b.available INTO free FROM merchant_balance b WHERE b.merchant_id = $1 FOR UPDATE;
  SELECT m.payouts_require_approval AND draft.total_amount >= m.approval_threshold, m.approvals_required INTO asks, required
  FROM merchant m WHERE m.id = $1;
  at := service_now() + (clock_timestamp() - now());
  refused := CASE
    WHEN draft.status <> 'draft' THEN 'conflict'
    WHEN draft.recipient_count = 0 THEN 'empty'
    WHEN NOT methods <@ connected THEN 'unconnected'
    WHEN NOT methods <@ operators THEN 'beyond_operators'
    WHEN largest > payment_max THEN 'beyond_payment'
    -- Read after the locks: whoever waited meets a halt that came meanwhile.
    WHEN EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) THEN 'halted'
    WHEN draft.total_amount > free THEN 'short'
  END;
  IF refused IS NOT NULL THEN
    RETURN QUERY SELECT refused, draft.status;
    RETURN;
  END IF;
  IF day_max IS NOT NULL THEN PERFORM take_allowance(credential, token, day_max, draft.total_amount); END IF;
  INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
  VALUES (merchant, 'batch:' || draft.id, 'reserve', 'available', 'reserved', draft.total_amount, at);
  UPDATE batch b
  SET status = CASE WHEN asks THEN 'pending_approval' ELSE 'processing' END::batch_status,
    started_at = CASE WHEN NOT asks THEN at END,
    maker_member_ids = CASE WHEN asked_by = ANY (b.maker_member_ids) OR asked_by IS NULL THEN b.maker_member_ids
      ELSE b.maker_member_ids || asked_by END,
    approval = CASE WHEN asks THEN 'pending' ELSE 'not_required' END::approval_status,
    approval_digest = CASE WHEN asks THEN batch_digest(draft) END,
    approval_expires_at = CASE WHEN asks THEN at + approval_ms * interval '1 millisecond' END,
    approvals_required = CASE WHEN asks THEN required ELSE 0 END
  WHERE b.id = draft.id RETURNING b.* INTO draft;
  INSERT INTO event (merchant_id, type, data, created_at)
  VALUES (merchant, 'batch_' || draft.status, batch_told(draft, 'draft'), at);
  IF NOT asks THEN PERFORM enqueue_batches(); END IF;
  RETURN QUERY SELECT draft.status::text, draft.status;
END $$;

DROP FUNCTION decide_approval;
CREATE FUNCTION decide_approval(
  merchant int, payout bigint, batch int, credential int, credential_version int, decided approval_status, shown bytea, why text,
  address text DEFAULT ''
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
  SELECT * INTO person FROM person_of(merchant, credential, credential_version, address);
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
    WHEN decided = 'approved' AND (shown IS DISTINCT FROM asked.digest OR shown <> CASE WHEN payout IS NULL
      THEN batch_digest(many)
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

-- As before, and for a caller only while its key, its account and its address may act: else `moved` is null.
DROP FUNCTION cancel_payout;
CREATE FUNCTION cancel_payout(
  merchant int, payout bigint, credential int DEFAULT NULL, credential_version int DEFAULT NULL, address text DEFAULT ''
) RETURNS TABLE (moved boolean, status payout_status)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  was payout_status;
BEGIN
  IF credential IS NOT NULL AND NOT may_act(merchant, credential, credential_version, address) THEN
    RETURN QUERY SELECT NULL::boolean, NULL::payout_status;
    RETURN;
  END IF;
  SELECT p.status INTO was FROM payout p WHERE p.id = $2 AND p.merchant_id = $1 FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  IF was = 'pending' THEN PERFORM cancel_pending(ARRAY[$2]); END IF;
  RETURN QUERY SELECT was = 'pending', CASE was WHEN 'pending' THEN 'cancelled' ELSE was END;
END $$;

DROP FUNCTION cancel_batch;
CREATE FUNCTION cancel_batch(
  merchant int, batch int, becomes approval_status DEFAULT NULL, why jsonb DEFAULT '{}', credential int DEFAULT NULL,
  credential_version int DEFAULT NULL, address text DEFAULT ''
) RETURNS TABLE (moved boolean, was batch_status, status batch_status) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  going batch;
  before batch_status;
  stopped int;
  freed bigint;
BEGIN
  IF credential IS NOT NULL AND NOT may_act(merchant, credential, credential_version, address) THEN
    RETURN QUERY SELECT NULL::boolean, NULL::batch_status, NULL::batch_status;
    RETURN;
  END IF;
  SELECT b.* INTO going FROM batch b WHERE b.id = $2 AND b.merchant_id = $1 FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  before := going.status;
  IF going.processed_at IS NOT NULL OR going.cancel_asked_at IS NOT NULL THEN
    RETURN QUERY SELECT false, before, before;
    RETURN;
  END IF;
  WITH gone AS (
    UPDATE batch_recipient r SET status = 'cancelled', settled_at = at, evidence_source = 'service'
    WHERE r.batch_id = $2 AND r.sent_at IS NULL AND r.status = 'pending' RETURNING r.amount
  ) SELECT count(*), sum(g.amount) INTO stopped, freed FROM gone g;
  IF before <> 'draft' AND freed > 0 THEN
    PERFORM FROM merchant_balance b WHERE b.merchant_id = $1 FOR UPDATE;
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    VALUES ($1, 'batch:' || $2, 'void', 'reserved', 'available', freed, at);
  END IF;
  UPDATE batch b
  SET cancel_asked_at = at, cancelled_count = stopped, approval = coalesce(becomes, b.approval),
    status = CASE WHEN b.processing_count = 0 THEN 'cancelled' ELSE b.status END,
    processed_at = CASE WHEN b.processing_count = 0 THEN at END
  WHERE b.id = $2 RETURNING b.* INTO going;
  INSERT INTO event (merchant_id, type, data, created_at)
  VALUES ($1, CASE WHEN before <> 'processing' THEN 'batch_cancelled' WHEN going.processed_at IS NULL THEN 'batch_progress'
    ELSE 'bulk_pay_done' END, batch_told(going, before) || why, at);
  RETURN QUERY SELECT true, before, going.status;
END $$;

REVOKE EXECUTE ON FUNCTION network_of, whitelist_allows, collect_many, deposit_many, create_payouts, may_act, person_of,
  process_batch, decide_approval, cancel_payout, cancel_batch FROM PUBLIC;
GRANT EXECUTE ON FUNCTION collect_many, deposit_many, create_payouts, process_batch, decide_approval, cancel_payout, cancel_batch
  TO payments_service;
