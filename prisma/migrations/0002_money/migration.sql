-- Money: every write of it is one call of one function that takes arrays, so that concurrent requests share a
-- statement and a commit. The functions run with the owner's rights (the service's role cannot write here itself), and
-- look for tables in `pg_temp` last: no temporary table of a caller stands in for one of theirs.

-- The clearing account of an operator: what it holds for a merchant.
CREATE FUNCTION clearing_account(provider provider) RETURNS ledger_account LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT (CASE provider
    WHEN 'OperatorA' THEN 'clearing_operator_a'
    WHEN 'OperatorB' THEN 'clearing_operator_b'
    WHEN 'OperatorC' THEN 'clearing_operator_c'
    WHEN 'OperatorD' THEN 'clearing_operator_d'
  END)::ledger_account
$$;

-- Running balances follow the movements of each statement: one update per merchant, rows locked in id order.
CREATE FUNCTION apply_movements() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  merchants int[] := ARRAY(SELECT DISTINCT merchant_id FROM inserted ORDER BY merchant_id);
  applied int;
BEGIN
  PERFORM FROM merchant_balance WHERE merchant_id = ANY (merchants) ORDER BY merchant_id FOR UPDATE;
  UPDATE merchant_balance b
  SET available = b.available + change.available, reserved = b.reserved + change.reserved
  FROM (
    SELECT merchant_id,
      sum(CASE 'available'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount ELSE 0 END) AS available,
      sum(CASE 'reserved'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount ELSE 0 END) AS reserved
    FROM inserted GROUP BY merchant_id
  ) change
  WHERE b.merchant_id = change.merchant_id;
  GET DIAGNOSTICS applied = ROW_COUNT;
  IF applied <> cardinality(merchants) THEN
    RAISE EXCEPTION 'a merchant without a balance row' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "movement_applied" AFTER INSERT ON "movement" REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION apply_movements();

-- Every merchant has its balance from its first moment.
CREATE FUNCTION open_balance() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO merchant_balance (merchant_id) VALUES (NEW.id);
  RETURN NULL;
END $$;
CREATE TRIGGER "merchant_opened" AFTER INSERT ON "merchant" FOR EACH ROW EXECUTE FUNCTION open_balance();

-- Collect: records the payment, the intent to ask the operator, and the event, in this order of arrival.
-- The key's version and the account are checked once more here, so that money stops the moment a key is regenerated.
-- `outcome` is `made`, `duplicate` or `unauthenticated`; only `made` has ids.
CREATE FUNCTION collect_many(
  merchant_ids int[], api_key_ids int[], api_key_versions int[], providers provider[], phones text[],
  amounts bigint[], refs text[], requests jsonb[], lifetime_ms bigint, fence_ms bigint, first_check_ms bigint
) RETURNS TABLE (
  place int, outcome text, transaction_id bigint, request_id bigint, correlation_id uuid, created_at timestamptz,
  expires_at timestamptz
) LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH item AS (
    SELECT i.*, i.ordinality::int AS place
    FROM unnest(merchant_ids, api_key_ids, api_key_versions, providers, phones, amounts, refs, requests)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, provider, phone, amount, reference, request, ordinality)
  ), allowed AS (
    -- Who may not ask takes no reference away from who may.
    SELECT item.*, row_number() OVER (PARTITION BY item.merchant_id, item.reference ORDER BY item.place) = 1 AS first
    FROM item
    JOIN api_key k ON k.id = item.api_key_id AND k.merchant_id = item.merchant_id
      AND k.version = item.api_key_version AND k.revoked_at IS NULL
    JOIN merchant m ON m.id = item.merchant_id AND m.status = 'active'
  ), made AS (
    INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status, reference,
      request_data, expires_at, created_at)
    SELECT merchant_id, 'pay', provider, phone, amount, 'pending', reference, request,
      service_now() + lifetime_ms * interval '1 millisecond', service_now()
    FROM allowed WHERE first ORDER BY merchant_id, reference
    ON CONFLICT (reference, merchant_id) DO NOTHING
    RETURNING *
  ), asked AS (
    INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount, phone, fence_until,
      next_check_at, created_at)
    SELECT merchant_id, id, payment_method, 'collect', gen_random_uuid(), amount, customer_phone,
      now() + fence_ms * interval '1 millisecond', service_now() + first_check_ms * interval '1 millisecond', service_now()
    FROM made ORDER BY id
    RETURNING *
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT merchant_id, 'payment_pending', jsonb_build_object(
      'transaction_id', id, 'reference', reference, 'amount', amount, 'currency', 'XOF', 'payment_method', payment_method,
      'customer_phone', customer_phone, 'status', status), created_at
    FROM made ORDER BY id
  )
  SELECT item.place,
    CASE WHEN made.id IS NOT NULL THEN 'made' WHEN allowed.place IS NULL THEN 'unauthenticated' ELSE 'duplicate' END,
    made.id, asked.id, asked.correlation_id, made.created_at, made.expires_at
  FROM item
  LEFT JOIN allowed USING (place)
  LEFT JOIN made ON allowed.first AND made.merchant_id = item.merchant_id AND made.reference = item.reference
  LEFT JOIN asked ON asked.transaction_id = made.id
  ORDER BY item.place
$$;

-- Settle: the one way in which a transaction moves, whoever learned the outcome. Compare-and-set along the lifecycle,
-- the credit, the event and the end of the operator request, together. A collection that ended unpaid is revived only
-- by the operator's own answer, and flagged late. What is credited is what the operator says was paid.
-- Of several outcomes for one transaction in a call the first is tried. `moved` is false where the move was not allowed
-- or had happened; `status` is then what stands.
CREATE FUNCTION settle_many(
  transaction_ids bigint[], to_statuses transaction_status[], sources text[], amounts bigint[], operator_references text[],
  reasons text[], messages text[], evidences jsonb[], late_check_ms bigint
) RETURNS TABLE (
  place int, transaction_id bigint, moved boolean, from_status transaction_status, status transaction_status, late boolean
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM FROM transaction t WHERE t.id = ANY (transaction_ids) ORDER BY t.id FOR UPDATE;
  RETURN QUERY
  WITH item AS (
    SELECT i.*, i.ordinality::int AS place
    FROM unnest(transaction_ids, to_statuses, sources, amounts, operator_references, reasons, messages, evidences)
      WITH ORDINALITY AS i (id, to_status, source, amount, operator_reference, reason, message, evidence, ordinality)
  ), chosen AS (
    SELECT DISTINCT ON (i.id) i.*, t.status AS was, t.status IN ('expired', 'failed', 'cancelled') AS was_over,
      t.transaction_type AS type
    FROM item i JOIN transaction t ON t.id = i.id
    ORDER BY i.id, i.place
  ), allowed AS (
    SELECT c.* FROM chosen c
    JOIN lifecycle_move m ON m.lifecycle = 'transaction' AND m.from_status = c.was::text AND m.to_status = c.to_status::text
    -- What is not an outcome (processing, reversed) is never settled: it takes other movements.
    WHERE c.to_status IN ('success', 'failed', 'cancelled', 'expired') AND (NOT c.was_over OR (c.type = 'pay' AND c.source IN ('initiate', 'query')))
  ), changed AS (
    UPDATE transaction t
    SET status = a.to_status, late = t.late OR a.was_over, settled_at = service_now(), evidence_source = a.source,
      operator_reference = coalesce(a.operator_reference, t.operator_reference),
      failure_reason = a.reason, failure_message = a.message,
      settled_amount = CASE WHEN a.to_status = 'success' THEN coalesce(a.amount, t.amount) ELSE t.settled_amount END
    FROM allowed a WHERE t.id = a.id
    RETURNING t.*, a.place, a.was, a.evidence
  ), credited AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'transaction:' || c.id, 'credit', clearing_account(c.payment_method), 'available',
      c.settled_amount, c.settled_at
    FROM changed c WHERE c.status = 'success' AND c.transaction_type = 'pay' ORDER BY c.merchant_id, c.id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id,
      CASE c.status WHEN 'success' THEN 'payment_received' ELSE 'payment_' || c.status::text END,
      jsonb_strip_nulls(jsonb_build_object(
        'transaction_id', c.id, 'reference', c.reference, 'amount', coalesce(c.settled_amount, c.amount),
        'currency', 'XOF', 'payment_method', c.payment_method, 'customer_phone', c.customer_phone, 'status', c.status,
        'previous_status', c.was, 'late', c.late, 'failure_reason', c.failure_reason)), c.settled_at
    FROM changed c ORDER BY c.merchant_id, c.id
  ), answered AS (
    UPDATE operator_request r
    SET state = CASE WHEN c.status = 'success' THEN 'settled'
          WHEN c.status = 'failed' AND c.evidence_source <> 'service' THEN 'refused'
          WHEN c.status = 'expired' THEN r.state ELSE 'closed' END::operator_request_state,
      -- What expired is still asked about for a while: late money is real. What a callback made due stays due.
      next_check_at = CASE
        WHEN c.status = 'expired' AND r.next_check_at <= service_now() THEN r.next_check_at
        WHEN c.status = 'expired' THEN service_now() + late_check_ms * interval '1 millisecond' END,
      evidence = coalesce(c.evidence, r.evidence)
    FROM changed c
    WHERE r.merchant_id = c.merchant_id AND r.transaction_id = c.id AND r.kind = 'collect'
  )
  SELECT i.place, i.id, c.id IS NOT NULL AND c.place = i.place, h.was, coalesce(c.status, t.status), coalesce(c.late, t.late)
  FROM item i
  JOIN transaction t ON t.id = i.id
  LEFT JOIN chosen h ON h.id = i.id
  LEFT JOIN changed c ON c.id = i.id
  ORDER BY i.place;
END $$;

-- Reserve: moves money from available to reserved for a cause, once per cause; what is not covered is refused, in order
-- of arrival. `reserved` is true where this money is set aside for it, also when an earlier call did it.
CREATE FUNCTION reserve_many(merchant_ids int[], causes text[], amounts bigint[])
RETURNS TABLE (place int, reserved boolean) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchant_ids) ORDER BY b.merchant_id FOR UPDATE;
  RETURN QUERY
  WITH RECURSIVE item AS (
    SELECT i.*, i.ordinality::int AS place,
      row_number() OVER (PARTITION BY i.merchant_id ORDER BY i.ordinality) AS nth,
      EXISTS (SELECT FROM movement m WHERE m.cause = i.cause AND m.step = 'reserve')
        OR row_number() OVER (PARTITION BY i.cause ORDER BY i.ordinality) > 1 AS again
    FROM unnest(merchant_ids, causes, amounts) WITH ORDINALITY AS i (merchant_id, cause, amount, ordinality)
  ), walk AS (
    -- One step per item of a merchant: what is covered leaves less for the next.
    SELECT b.merchant_id, 0::bigint AS nth, b.available AS rest, NULL::int AS place, false AS taken
    FROM merchant_balance b WHERE b.merchant_id = ANY (merchant_ids)
    UNION ALL
    SELECT w.merchant_id, i.nth, CASE WHEN i.again OR i.amount > w.rest THEN w.rest ELSE w.rest - i.amount END, i.place,
      NOT i.again AND i.amount <= w.rest
    FROM walk w JOIN item i ON i.merchant_id = w.merchant_id AND i.nth = w.nth + 1
  ), moved AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT i.merchant_id, i.cause, 'reserve', 'available', 'reserved', i.amount, service_now()
    FROM walk w JOIN item i USING (place) WHERE w.taken ORDER BY i.merchant_id, i.place
    RETURNING cause, merchant_id, amount
  )
  SELECT i.place, (i.cause, i.merchant_id, i.amount) IN (SELECT moved.cause, moved.merchant_id, moved.amount FROM moved)
    OR EXISTS (SELECT FROM movement m WHERE m.cause = i.cause AND m.step = 'reserve'
      AND m.merchant_id = i.merchant_id AND m.amount = i.amount)
  FROM item i ORDER BY i.place;
END $$;

-- Ends reservations: `post` pays the operator's clearing account, `void` gives the money back. A cause ends once;
-- `ended` is true for the call that did it.
CREATE FUNCTION end_reservation_many(causes text[], steps ledger_step[], providers provider[])
RETURNS TABLE (place int, ended boolean) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM FROM merchant_balance b
  WHERE b.merchant_id IN (SELECT m.merchant_id FROM movement m WHERE m.cause = ANY (causes) AND m.step = 'reserve')
  ORDER BY b.merchant_id FOR UPDATE;
  RETURN QUERY
  WITH item AS (
    SELECT i.*, i.ordinality::int AS place, row_number() OVER (PARTITION BY i.cause ORDER BY i.ordinality) = 1 AS first
    FROM unnest(causes, steps, providers) WITH ORDINALITY AS i (cause, step, provider, ordinality)
  ), moved AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT held.merchant_id, i.cause, i.step, 'reserved',
      CASE i.step WHEN 'post' THEN clearing_account(i.provider) WHEN 'void' THEN 'available' END, held.amount, service_now()
    FROM item i JOIN movement held ON held.cause = i.cause AND held.step = 'reserve'
    WHERE i.first AND i.step IN ('post', 'void')
    ORDER BY held.merchant_id, i.place
    ON CONFLICT DO NOTHING
    RETURNING cause
  )
  SELECT i.place, i.first AND i.cause IN (SELECT moved.cause FROM moved) FROM item i ORDER BY i.place;
END $$;

-- Balance check: keeps the question for an operator's float, and whether it was answered.
CREATE FUNCTION record_balance_check(merchant int, operator provider, check_reference text, reason text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status, reference,
    request_data, evidence_source, failure_reason, settled_at, created_at)
  VALUES (merchant, 'balance_check', operator, '', 0, CASE WHEN reason IS NULL THEN 'success' ELSE 'failed' END::transaction_status,
    check_reference, jsonb_build_object('payment_method', operator), 'query', reason, service_now(), service_now())
$$;

-- Fund: money that the owner of a sandbox gives to a merchant, once per cause.
CREATE FUNCTION fund_merchant(merchant int, cause text, amount bigint) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH moved AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    VALUES (merchant, cause, 'fund', 'funding', 'available', amount, service_now())
    ON CONFLICT (cause, step) DO NOTHING RETURNING id
  ) SELECT EXISTS (SELECT FROM moved)
$$;

-- The proof: every balance rebuilt from its movements, every paid collection against its one credit, and every end of a
-- reservation against its beginning, in one snapshot. No row means that the ledger holds.
CREATE FUNCTION verify_ledger() RETURNS TABLE (merchant_id int, problem text) LANGUAGE sql STABLE AS $$
  WITH rebuilt AS (
    SELECT m.merchant_id,
      sum(CASE 'available'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount ELSE 0 END) AS available,
      sum(CASE 'reserved'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount ELSE 0 END) AS reserved
    FROM movement m GROUP BY m.merchant_id
  ), credit AS (
    SELECT m.cause, m.merchant_id, m.amount, m.debit, m.credit FROM movement m WHERE m.step = 'credit'
  ), paid AS (
    SELECT 'transaction:' || t.id AS cause, t.merchant_id, t.settled_amount AS amount, clearing_account(t.payment_method) AS account
    FROM transaction t WHERE t.transaction_type = 'pay' AND t.status IN ('success', 'reversed')
  )
  SELECT b.merchant_id, format('balance says available %s, reserved %s; its movements say %s, %s', b.available, b.reserved,
    coalesce(r.available, 0), coalesce(r.reserved, 0))
  FROM merchant_balance b LEFT JOIN rebuilt r USING (merchant_id)
  WHERE (b.available, b.reserved) IS DISTINCT FROM (coalesce(r.available, 0), coalesce(r.reserved, 0))
  UNION ALL
  SELECT r.merchant_id, 'has movements but no balance'
  FROM rebuilt r LEFT JOIN merchant_balance b USING (merchant_id) WHERE b.merchant_id IS NULL
  UNION ALL
  SELECT coalesce(p.merchant_id, c.merchant_id), CASE
    WHEN c.cause IS NULL THEN p.cause || ' is paid but was never credited'
    WHEN p.cause IS NULL THEN c.cause || ' was credited but is not paid'
    ELSE p.cause || ' was credited with another amount, account or merchant' END
  FROM paid p FULL JOIN credit c USING (cause)
  WHERE (p.merchant_id, p.amount, p.account, 'available'::ledger_account)
    IS DISTINCT FROM (c.merchant_id, c.amount, c.debit, c.credit)
  UNION ALL
  SELECT ended.merchant_id, ended.cause || ' ended otherwise than it was reserved'
  FROM movement ended LEFT JOIN movement held ON held.cause = ended.cause AND held.step = 'reserve'
  WHERE ended.step IN ('post', 'void')
    AND (ended.merchant_id, ended.amount, ended.debit) IS DISTINCT FROM (held.merchant_id, held.amount, held.credit)
$$;

REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC;
GRANT EXECUTE ON FUNCTION service_now, clearing_account, collect_many, settle_many, reserve_many, end_reservation_many,
  record_balance_check, fund_merchant, verify_ledger TO payments_service;
