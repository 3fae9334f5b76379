-- Records deposits: the payment, its money set aside, the intent to ask the operator, the event and the
-- audit entry, all or nothing. Judged are first the credential, then the reference, then of a refund what it
-- gives back, then the halt, then the money: what is covered is made, in the order of arrival. A deposit of
-- the threshold and more, of a merchant whose approvals cover deposits, waits for people: its `outcome` is
-- `waits`, its money is set aside, and no operator is asked. `allowances` are of callers who are limited per
-- day: where one is beyond it, nothing of the call stays. `identities` are what the operators are asked
-- under; what an orphan of the operator has is asked about and never sent. The same reference twice in one
-- call is judged as in two calls.
CREATE OR REPLACE FUNCTION deposit_many(
  merchant_ids int[], api_key_ids int[], api_key_versions int[], providers provider[], phones text[],
  amounts bigint[], refs text[], requests jsonb[], refund_of_ids bigint[], identities uuid[],
  client_addresses text[], recordings audit_recording[], allowances key_allowance[], fence_ms bigint,
  first_check_ms bigint, approval_ms bigint, waits boolean
) RETURNS TABLE (
  outcome text, transaction_id bigint, request_id bigint, correlation_id uuid,
  created_at timestamptz, is_orphan boolean
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
  SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz(3);
  item record;
  made record;
  place int;
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
  PERFORM share_access(merchant_ids, waits);
  -- What is given back of a collection changes under its lock only.
  IF array_remove(refund_of_ids, NULL) <> '{}' THEN
    PERFORM FROM transaction t WHERE t.id = ANY (refund_of_ids) ORDER BY t.id FOR UPDATE;
  END IF;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchant_ids) ORDER BY b.merchant_id FOR UPDATE;
  -- Read after the locks: whoever waited meets a halt that came meanwhile.
  FOR item IN
    SELECT i.merchant_id, i.amount, i.refund_of_id, i.place, known.active, known.threshold, old.found,
      original.rest AS refundable, balance.available, orphan.provider IS NOT NULL AS is_orphan,
      orphan.provider <> i.provider AS is_elsewhere, (SELECT service_now() + (
        clock_timestamp() - now())) AS now,
      EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) AS halted
    FROM unnest(merchant_ids, api_key_ids, api_key_versions, providers, amounts, refs, refund_of_ids,
      identities, client_addresses)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, provider, amount, reference,
        refund_of_id, identity, address, place)
    LEFT JOIN LATERAL (
      SELECT true AS active,
        CASE WHEN m.payouts_require_approval AND m.approvals_cover_deposits
          THEN m.approval_threshold END AS threshold
      FROM credential k JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
      WHERE k.id = i.api_key_id AND k.merchant_id = i.merchant_id AND k.version = i.api_key_version
        AND k.revoked_at IS NULL
        AND whitelist_allows(m.ip_whitelist, i.address)
      LIMIT 1
    ) AS known ON true
    LEFT JOIN LATERAL (
      -- Said so, only the index that identifies it can answer, whatever the planner believes of the others.
      SELECT true AS found FROM transaction t
      WHERE (t.reference, t.merchant_id) BETWEEN (i.reference, i.merchant_id)
        AND (i.reference, i.merchant_id) LIMIT 1
    ) AS old ON true
    -- What is left of a collection: paid, less what was given back and what is on its way.
    LEFT JOIN LATERAL (
      SELECT t.settled_amount - (
        SELECT coalesce(sum(CASE WHEN r.status = 'success' THEN r.settled_amount
          WHEN r.status IN ('pending', 'processing') THEN r.amount END), 0)
        FROM transaction r WHERE r.refund_of_id = t.id) AS rest
      FROM transaction t
      WHERE t.id = i.refund_of_id AND t.merchant_id = i.merchant_id AND t.transaction_type = 'pay'
        AND t.status = 'success'
      LIMIT 1
    ) AS original ON true
    LEFT JOIN LATERAL (
      SELECT b.available FROM merchant_balance b WHERE b.merchant_id = i.merchant_id LIMIT 1
    ) AS balance ON true
    LEFT JOIN LATERAL (
      -- What the operator did before a restore is only asked about. One operator executed it, so no other one
      -- is asked for it.
      SELECT o.provider FROM operator_orphan o WHERE o.correlation_id = i.identity
        ORDER BY o.provider <> i.provider LIMIT 1
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
      ELSIF item.amount >= item.threshold THEN waiting := waiting || ids[item.place]; END IF;
      IF item.refund_of_id IS NOT NULL THEN refunded := refunded || item.refund_of_id; END IF;
    END IF;
  END LOOP;
  FOR made IN
    WITH made AS (
      -- A collection may take the reference at this moment: who is there first has it.
      INSERT INTO transaction (id, merchant_id, transaction_type, payment_method, customer_phone, amount,
        status, reference, request_data, refund_of_id, created_at, correlation_id)
      SELECT i.id, i.merchant_id, 'deposit', i.provider, i.phone, i.amount,
        CASE WHEN i.id = ANY (waiting) THEN 'pending' ELSE 'processing' END::transaction_status, i.reference,
        i.request, i.refund_of_id, at, coalesce(i.identity, gen_random_uuid())
      FROM unnest(ids, merchant_ids, providers, phones, amounts, refs, requests, refund_of_ids, identities)
        AS i (id, merchant_id, provider, phone, amount, reference, request, refund_of_id, identity)
      WHERE i.id IS NOT NULL ORDER BY i.merchant_id, i.reference, i.id
      ON CONFLICT (reference, merchant_id) DO NOTHING
      RETURNING id, merchant_id, payment_method, customer_phone, amount, status, reference, refund_of_id,
        correlation_id, transaction AS self
    ), reserved AS (
      INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
      SELECT merchant_id, 'transaction:' || id, 'reserve', 'available', 'reserved', amount, at FROM made
        ORDER BY merchant_id, id
    ), told AS (
      INSERT INTO event (merchant_id, type, data, created_at)
      SELECT merchant_id, 'deposit_' || status, deposit_told(self, NULL, CASE status WHEN 'pending'
        THEN 'pending' END), at
      FROM made ORDER BY merchant_id, id
    ), waits AS (
      INSERT INTO deposit_approval (transaction_id, merchant_id, approval_digest, approval_expires_at,
        approvals_required, maker, maker_member_id)
      SELECT made.id, made.merchant_id, deposit_digest(self), at + approval_ms * interval '1 millisecond',
        m.approvals_required, r.actor, nullif(member_behind(made.merchant_id, r.actor), 0)
      FROM made JOIN merchant m ON m.id = made.merchant_id
      CROSS JOIN LATERAL (SELECT (recordings[array_position(ids, made.id)]).actor) AS r
      WHERE made.status = 'pending'
        ORDER BY made.merchant_id, made.id
    ), asked AS (
      INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount,
        phone, state, fence_until, next_check_at, accepted_at, created_at)
      SELECT merchant_id, id, payment_method, 'disburse', correlation_id, amount, customer_phone,
        CASE WHEN id = ANY (orphans) THEN 'accepted' ELSE 'sending' END::operator_request_state,
        now() + fence_ms * interval '1 millisecond',
        at + CASE WHEN id = ANY (orphans) THEN 0 ELSE first_check_ms END * interval '1 millisecond',
        CASE WHEN id = ANY (orphans) THEN at END, at
      FROM made WHERE status <> 'pending' ORDER BY id
      RETURNING id, transaction_id, correlation_id
    ), entry AS (
      INSERT INTO audit_entry (merchant_id, actor, address, request_id, door, operation, is_payment, target,
        after)
      SELECT r.merchant_id, r.actor, r.address, r.request_id, r.door, r.operation, true,
        'transaction:' || made.id, jsonb_build_object('amount', made.amount, 'reference', made.reference)
      FROM unnest(recordings, ids) WITH ORDINALITY
        AS r (merchant_id, actor, address, request_id, door, operation, made_id, place)
      JOIN made ON made.id = r.made_id
      ORDER BY r.place
      RETURNING merchant_id, id
    ), unsealed AS (
      INSERT INTO audit_unsealed (merchant_id, entry_id) SELECT merchant_id, id FROM entry
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
    IF outcome = 'made' AND (allowances[nth]).api_key_id IS NOT NULL THEN
      PERFORM take_allowance(allowances[nth], amounts[nth]);
    END IF;
    IF outcome = 'made' AND ids[nth] = ANY (waiting) THEN outcome := 'waits'; END IF;
    RETURN NEXT;
  END LOOP;
END $$;

REVOKE EXECUTE ON FUNCTION deposit_many FROM PUBLIC;
GRANT EXECUTE ON FUNCTION deposit_many TO payments_service;
