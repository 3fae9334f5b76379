-- Written by hand: what the schema language cannot say.

-- Money out, as before and cheap for one: who is covered, and what an outcome moves, is judged row by row between the
-- statement that reads under the locks and the one that writes, instead of in windows and recursion within one statement,
-- whose set-up alone took longer than its work.

-- What is the same reference twice in one call is judged as in two calls.
CREATE OR REPLACE FUNCTION deposit_many(
  merchant_ids int[], api_key_ids int[], api_key_versions int[], providers provider[], phones text[], amounts bigint[],
  refs text[], requests jsonb[], refund_of_ids bigint[], fence_ms bigint, first_check_ms bigint
) RETURNS TABLE (
  place int, outcome text, transaction_id bigint, request_id bigint, correlation_id uuid, created_at timestamptz
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
      balance.available, (SELECT service_now() + (clock_timestamp() - now())) AS now,
      EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) AS halted
    FROM unnest(merchant_ids, api_key_ids, api_key_versions, amounts, refs, refund_of_ids)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, amount, reference, refund_of_id, place)
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
      WHEN item.found THEN 'duplicate'
      WHEN item.refund_of_id IS NOT NULL AND item.refundable IS NULL THEN 'not_refundable'
      WHEN item.amount > item.refundable THEN 'too_large'
      WHEN item.halted THEN 'halted'
      WHEN item.refund_of_id = ANY (refunded) THEN 'again'
      WHEN item.amount <= rest THEN 'made'
      ELSE 'short' END;
    IF outcomes[item.place] = 'made' THEN
      rest := rest - item.amount;
      ids[item.place] := nextval('transaction_id_seq');
      IF item.refund_of_id IS NOT NULL THEN refunded := refunded || item.refund_of_id; END IF;
    END IF;
  END LOOP;
  FOR made IN
    WITH made AS (
      -- A collection may take the reference at this moment: who is there first has it.
      INSERT INTO transaction (id, merchant_id, transaction_type, payment_method, customer_phone, amount, status, reference,
        request_data, refund_of_id, created_at)
      SELECT i.id, i.merchant_id, 'deposit', i.provider, i.phone, i.amount, 'processing', i.reference, i.request, i.refund_of_id, at
      FROM unnest(ids, merchant_ids, providers, phones, amounts, refs, requests, refund_of_ids)
        AS i (id, merchant_id, provider, phone, amount, reference, request, refund_of_id)
      WHERE i.id IS NOT NULL ORDER BY i.merchant_id, i.reference, i.id
      ON CONFLICT (reference, merchant_id) DO NOTHING
      RETURNING id, merchant_id, payment_method, customer_phone, amount, status, reference, refund_of_id
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
      INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount, phone, fence_until,
        next_check_at, created_at)
      SELECT merchant_id, id, payment_method, 'disburse', gen_random_uuid(), amount, customer_phone,
        now() + fence_ms * interval '1 millisecond', at + first_check_ms * interval '1 millisecond', at
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
    RETURN NEXT;
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION settle_deposits(
  transaction_ids bigint[], to_statuses transaction_status[], sources text[], amounts bigint[], operator_references text[],
  reasons text[], messages text[], evidences jsonb[], reversal_check_ms bigint[],
  attempts smallint[] DEFAULT NULL
) RETURNS TABLE (place int, moved boolean, status transaction_status)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz;
  request record;
  known bigint[];
  statuses transaction_status[];
  -- What was set aside; null where nothing may be settled.
  helds bigint[];
  -- The last send, while its operator is not known to have it.
  sends smallint[];
  originals bigint[];
  nth int;
  -- Whom each outcome moves, what of it was set aside, and what is paid.
  ids bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(transaction_ids)]);
  held bigint[] := ids;
  settled bigint[] := ids;
BEGIN
  SELECT array_agg(t.id), array_agg(t.status), array_agg(t.held), coalesce(array_agg(t.refund_of_id) FILTER (
      WHERE t.refund_of_id IS NOT NULL), '{}'), max(t.now)
    INTO known, statuses, helds, originals, at
  FROM (
    SELECT t.id, t.status, t.refund_of_id, (SELECT service_now()) AS now, CASE WHEN t.transaction_type = 'deposit' THEN (
      SELECT m.amount FROM movement m WHERE m.cause = 'transaction:' || t.id AND m.step = 'reserve') END AS held
    FROM transaction t
    -- What they give back of is settled with them, and was there before them.
    WHERE t.id = ANY (transaction_ids || ARRAY(
      SELECT r.refund_of_id FROM transaction r WHERE r.id = ANY (transaction_ids) AND r.refund_of_id IS NOT NULL))
    ORDER BY t.id FOR UPDATE OF t
  ) AS t;
  IF array_remove(attempts, NULL) <> '{}' THEN
    FOR request IN
      SELECT r.transaction_id, r.attempt, r.state FROM operator_request r
      WHERE r.transaction_id = ANY (transaction_ids) AND r.kind = 'disburse' ORDER BY r.transaction_id FOR NO KEY UPDATE
    LOOP
      IF request.state <> 'accepted' THEN sends[array_position(known, request.transaction_id)] := request.attempt; END IF;
    END LOOP;
  END IF;
  -- The first outcome that may move it does.
  FOR item IN 1 .. cardinality(transaction_ids) LOOP
    nth := array_position(known, transaction_ids[item]);
    IF statuses[nth] = 'processing' AND helds[nth] IS NOT NULL AND to_statuses[item] IN ('success', 'failed')
      AND (attempts[item] IS NULL OR attempts[item] = sends[nth]) THEN
      statuses[nth] := to_statuses[item];
      ids[item] := known[nth];
      held[item] := helds[nth];
      IF to_statuses[item] = 'success' THEN settled[item] := least(amounts[item], held[item]); END IF;
    END IF;
  END LOOP;
  WITH changed AS (
    UPDATE transaction t
    SET status = i.to_status, settled_at = at, evidence_source = i.source,
      operator_reference = coalesce(i.operator_reference, t.operator_reference),
      failure_reason = i.reason, failure_message = i.message, settled_amount = i.settled
    FROM unnest(ids, to_statuses, sources, held, settled, operator_references, reasons, messages, evidences, reversal_check_ms)
      AS i (id, to_status, source, held, settled, operator_reference, reason, message, evidence, watch_ms)
    WHERE t.id = ANY (ids) AND t.id = i.id
    RETURNING t.*, i.held, i.evidence, i.watch_ms
  ), paid AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'transaction:' || c.id, side.step, 'reserved', side.account, side.amount, at
    FROM changed c CROSS JOIN LATERAL (VALUES
      ('post'::ledger_step, clearing_account(c.payment_method), c.settled_amount),
      ('release'::ledger_step, 'available'::ledger_account, c.held - c.settled_amount),
      ('void'::ledger_step, 'available'::ledger_account, CASE WHEN c.settled_amount IS NULL THEN c.held END)
    ) AS side (step, account, amount)
    WHERE side.amount <> 0 ORDER BY c.merchant_id, c.id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id, CASE c.status WHEN 'success' THEN 'deposit_completed' ELSE 'deposit_failed' END,
      jsonb_strip_nulls(jsonb_build_object(
        'transaction_id', c.id, 'reference', c.reference, 'amount', coalesce(c.settled_amount, c.amount),
        'currency', 'XOF', 'payment_method', c.payment_method, 'customer_phone', c.customer_phone, 'status', c.status,
        'previous_status', 'processing', 'failure_reason', c.failure_reason, 'refund_of', c.refund_of_id)), at
    FROM changed c ORDER BY c.merchant_id, c.id
  )
  UPDATE operator_request r
  SET state = CASE WHEN c.status = 'success' THEN 'settled' WHEN c.evidence_source <> 'service' THEN 'refused'
        ELSE 'closed' END::operator_request_state,
    -- A callback that came meanwhile and claims something else than was answered has its own question.
    next_check_at = CASE
      WHEN r.next_check_at <= at + (clock_timestamp() - now()) AND r.handle->>'claimed' <>
        CASE c.status WHEN 'success' THEN 'settled' ELSE 'refused' END THEN r.next_check_at
      -- What was paid may be taken back: of some operators only a question tells.
      WHEN c.status = 'success' THEN at + c.watch_ms * interval '1 millisecond' END,
    evidence = coalesce(c.evidence, r.evidence)
  FROM changed c
  WHERE r.transaction_id = ANY (ids) AND r.transaction_id = c.id AND r.kind = 'disburse';
  FOR item IN 1 .. cardinality(transaction_ids) LOOP
    place := item;
    moved := ids[item] IS NOT NULL;
    status := statuses[array_position(known, transaction_ids[item])];
    RETURN NEXT;
  END LOOP;

  IF originals <> '{}' THEN
    WITH given AS MATERIALIZED (
      SELECT r.refund_of_id AS id, sum(r.settled_amount) AS amount
      FROM transaction r WHERE r.refund_of_id = ANY (originals) AND r.status = 'success' GROUP BY 1
    ), ended AS (
      UPDATE transaction t SET status = 'reversed' FROM given g
      WHERE t.id = ANY (originals) AND t.id = g.id AND t.status = 'success' AND t.settled_amount <= g.amount
      RETURNING t.*
    )
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT e.merchant_id, 'payment_reversed', jsonb_build_object(
      'transaction_id', e.id, 'reference', e.reference, 'amount', e.settled_amount, 'currency', 'XOF',
      'payment_method', e.payment_method, 'customer_phone', e.customer_phone, 'status', e.status,
      'previous_status', 'success', 'late', e.late, 'refunded', true), at
    FROM ended e ORDER BY e.merchant_id, e.id;
  END IF;
END $$;

CREATE OR REPLACE FUNCTION settle_payouts(
  payout_ids bigint[], to_statuses payout_status[], sources text[], amounts bigint[], operator_references text[],
  reasons text[], messages text[], evidences jsonb[], reversal_check_ms bigint[],
  attempts smallint[] DEFAULT NULL
) RETURNS TABLE (place int, moved boolean, status payout_status)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz;
  request record;
  merchants int[];
  known bigint[];
  statuses payout_status[];
  -- What was set aside; null where nothing may be settled.
  helds bigint[];
  -- The last send, while its operator is not known to have it.
  sends smallint[];
  nth int;
  -- Whom each outcome moves, what of it was set aside, and what is paid.
  ids bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(payout_ids)]);
  held bigint[] := ids;
  settled bigint[] := ids;
BEGIN
  SELECT array_agg(p.id), array_agg(p.status), array_agg(p.held), array_agg(p.merchant_id), max(p.now)
    INTO known, statuses, helds, merchants, at
  FROM (
    SELECT p.id, p.status, p.merchant_id, (SELECT service_now()) AS now, (
      SELECT m.amount FROM movement m WHERE m.cause = 'payout:' || p.id AND m.step = 'reserve') AS held
    FROM payout p WHERE p.id = ANY (payout_ids) ORDER BY p.id FOR UPDATE OF p
  ) AS p;
  IF array_remove(attempts, NULL) <> '{}' THEN
    FOR request IN
      SELECT r.payout_id, r.attempt, r.state FROM operator_request r
      WHERE r.payout_id = ANY (payout_ids) ORDER BY r.payout_id FOR NO KEY UPDATE
    LOOP
      IF request.state <> 'accepted' THEN sends[array_position(known, request.payout_id)] := request.attempt; END IF;
    END LOOP;
  END IF;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchants) ORDER BY b.merchant_id FOR UPDATE;
  -- The first outcome that may move it does.
  FOR item IN 1 .. cardinality(payout_ids) LOOP
    nth := array_position(known, payout_ids[item]);
    IF statuses[nth] = 'processing' AND helds[nth] IS NOT NULL AND to_statuses[item] IN ('completed', 'failed')
      AND (attempts[item] IS NULL OR attempts[item] = sends[nth]) THEN
      statuses[nth] := to_statuses[item];
      ids[item] := known[nth];
      held[item] := helds[nth];
      IF to_statuses[item] = 'completed' THEN settled[item] := least(amounts[item], held[item]); END IF;
    END IF;
  END LOOP;
  WITH changed AS (
    UPDATE payout p
    SET status = i.to_status, settled_at = at, evidence_source = i.source,
      operator_reference = coalesce(i.operator_reference, p.operator_reference),
      failure_reason = i.reason, failure_message = i.message, settled_amount = i.settled
    FROM unnest(ids, to_statuses, sources, held, settled, operator_references, reasons, messages, evidences, reversal_check_ms)
      AS i (id, to_status, source, held, settled, operator_reference, reason, message, evidence, watch_ms)
    WHERE p.id = ANY (ids) AND p.id = i.id
    RETURNING p.*, p AS self, i.held, i.evidence, i.watch_ms
  ), paid AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'payout:' || c.id, side.step, 'reserved', side.account, side.amount, at
    FROM changed c CROSS JOIN LATERAL (VALUES
      ('post'::ledger_step, clearing_account(c.payment_method), c.settled_amount),
      ('release'::ledger_step, 'available'::ledger_account, c.held - c.settled_amount),
      ('void'::ledger_step, 'available'::ledger_account, CASE WHEN c.settled_amount IS NULL THEN c.held END)
    ) AS side (step, account, amount)
    WHERE side.amount <> 0 ORDER BY c.merchant_id, c.id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id, 'payout_' || c.status, payout_told(c.self, 'processing'), at FROM changed c ORDER BY c.merchant_id, c.id
  )
  UPDATE operator_request r
  SET state = CASE WHEN c.status = 'completed' THEN 'settled' WHEN c.evidence_source <> 'service' THEN 'refused'
        ELSE 'closed' END::operator_request_state,
    -- A callback that came meanwhile and claims something else than was answered has its own question.
    next_check_at = CASE
      WHEN r.next_check_at <= at + (clock_timestamp() - now()) AND r.handle->>'claimed' <>
        CASE c.status WHEN 'completed' THEN 'settled' ELSE 'refused' END THEN r.next_check_at
      -- What was paid may be taken back: of some operators only a question tells.
      WHEN c.status = 'completed' THEN at + c.watch_ms * interval '1 millisecond' END,
    evidence = coalesce(c.evidence, r.evidence)
  FROM changed c WHERE r.payout_id = ANY (ids) AND r.payout_id = c.id;
  FOR item IN 1 .. cardinality(payout_ids) LOOP
    place := item;
    moved := ids[item] IS NOT NULL;
    status := statuses[array_position(known, payout_ids[item])];
    RETURN NEXT;
  END LOOP;
END $$;

-- As before; the lock tells whose balances there are.
CREATE OR REPLACE FUNCTION apply_movements() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  merchants int[] := ARRAY(
    SELECT b.merchant_id FROM merchant_balance b
    WHERE b.merchant_id = ANY (ARRAY(SELECT i.merchant_id FROM inserted i)) ORDER BY b.merchant_id FOR UPDATE);
  missed boolean;
  owing int[];
BEGIN
  WITH changed AS (
    UPDATE merchant_balance b
    SET available = b.available + change.available, reserved = b.reserved + change.reserved,
      receivable = b.receivable + change.receivable
    FROM (
      SELECT merchant_id,
        sum(CASE 'available'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount ELSE 0 END) AS available,
        sum(CASE 'reserved'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount ELSE 0 END) AS reserved,
        sum(CASE 'suspense'::ledger_account WHEN debit THEN amount WHEN credit THEN -amount ELSE 0 END) AS receivable
      FROM inserted GROUP BY merchant_id
    ) change
    WHERE b.merchant_id = change.merchant_id AND b.merchant_id = ANY (merchants)
    RETURNING b.merchant_id, b.available > 0 AND b.receivable > 0 AS pays
  )
  SELECT array_agg(merchant_id) FILTER (WHERE pays),
    EXISTS (SELECT FROM inserted i WHERE i.merchant_id <> ALL (merchants))
    INTO owing, missed FROM changed;
  IF missed THEN
    RAISE EXCEPTION 'a merchant without a balance row' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF owing IS NOT NULL THEN
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT merchant_id, 'receivable:' || gen_random_uuid(), 'recover', 'available', 'suspense', least(available, receivable),
      service_now()
    FROM merchant_balance WHERE merchant_id = ANY (owing) ORDER BY merchant_id;
  END IF;
  RETURN NULL;
END $$;

-- Merchants that are not active, for those who look for what is due.
CREATE INDEX "merchant_inactive" ON "merchant" (id) WHERE status <> 'active';

-- What an update does not name does not change: the guards look no further. What they compare was read anew by each statement.
DROP TRIGGER "transaction_guard" ON "transaction";
CREATE TRIGGER "transaction_guard" BEFORE UPDATE OF id, merchant_id, transaction_type, payment_method, customer_phone, amount,
  reference, refund_of_id ON "transaction" FOR EACH ROW WHEN (
  (OLD.id, OLD.merchant_id, OLD.transaction_type, OLD.payment_method, OLD.customer_phone, OLD.amount, OLD.reference,
    OLD.refund_of_id)
  IS DISTINCT FROM
  (NEW.id, NEW.merchant_id, NEW.transaction_type, NEW.payment_method, NEW.customer_phone, NEW.amount, NEW.reference,
    NEW.refund_of_id)
) EXECUTE FUNCTION guard_transaction();
DROP TRIGGER "payout_guard" ON "payout";
CREATE TRIGGER "payout_guard" BEFORE UPDATE OF id, merchant_id, payment_method, destination_phone, amount, reference, scheduled_at,
  send_at, approval_digest, approval_expires_at, maker, beneficiary_id, beneficiary_name, request_data, created_at
  ON "payout" FOR EACH ROW WHEN (
  (OLD.id, OLD.merchant_id, OLD.payment_method, OLD.destination_phone, OLD.amount, OLD.reference, OLD.scheduled_at, OLD.send_at,
    OLD.approval_digest, OLD.approval_expires_at, OLD.maker, OLD.beneficiary_id, OLD.beneficiary_name, OLD.request_data,
    OLD.created_at)
  IS DISTINCT FROM
  (NEW.id, NEW.merchant_id, NEW.payment_method, NEW.destination_phone, NEW.amount, NEW.reference, NEW.scheduled_at, NEW.send_at,
    NEW.approval_digest, NEW.approval_expires_at, NEW.maker, NEW.beneficiary_id, NEW.beneficiary_name, NEW.request_data,
    NEW.created_at)
) EXECUTE FUNCTION guard_payout();
