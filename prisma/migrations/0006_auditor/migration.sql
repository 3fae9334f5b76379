-- CreateTable
CREATE TABLE "audit_point" (
    "singleton" BOOLEAN NOT NULL DEFAULT true,
    "movement_id" BIGINT NOT NULL DEFAULT 0,
    "event_id" BIGINT NOT NULL DEFAULT 0,
    "event_id_before" BIGINT NOT NULL DEFAULT 0,
    "next_movement_id" BIGINT NOT NULL,
    "next_event_id" BIGINT NOT NULL,
    "next_noted_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "whole_proven_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "audit_point_pkey" PRIMARY KEY ("singleton")
);

-- CreateTable
CREATE TABLE "audit_proven" (
    "merchant_id" INTEGER NOT NULL,
    "available" BIGINT NOT NULL,
    "reserved" BIGINT NOT NULL,
    "position" BIGINT NOT NULL,

    CONSTRAINT "audit_proven_pkey" PRIMARY KEY ("merchant_id")
);

-- CreateTable
CREATE TABLE "payments_out_halt" (
    "id" SERIAL NOT NULL,
    "reason" TEXT NOT NULL,
    "halted_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "lifted_reason" TEXT,
    "lifted_at" TIMESTAMPTZ(3),

    CONSTRAINT "payments_out_halt_pkey" PRIMARY KEY ("id")
);

-- Below: written by hand. What the schema language cannot say.

ALTER TABLE "audit_point" ADD CONSTRAINT "audit_point_single" CHECK ("singleton");
ALTER TABLE "payments_out_halt"
  ADD CONSTRAINT "payments_out_halt_reason" CHECK (char_length("reason") BETWEEN 1 AND 1000),
  ADD CONSTRAINT "payments_out_halt_lifted" CHECK (
    num_nulls("lifted_at", "lifted_reason") = 2 OR char_length("lifted_reason") BETWEEN 1 AND 1000 AND "lifted_at" IS NOT NULL
  );
CREATE UNIQUE INDEX "payments_out_halt_open" ON "payments_out_halt" ((true)) WHERE "lifted_at" IS NULL;
GRANT SELECT ON "payments_out_halt", "audit_point" TO payments_service;

-- No money leaves from now on. False where that was so already: then the first reason stays.
CREATE FUNCTION halt_payments_out(why text) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH made AS (
    INSERT INTO payments_out_halt (reason) VALUES (why) ON CONFLICT DO NOTHING RETURNING id
  ) SELECT EXISTS (SELECT FROM made)
$$;

-- Money may leave again. False where it might already.
CREATE FUNCTION resume_payments_out(why text) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH lifted AS (
    UPDATE payments_out_halt SET lifted_reason = why, lifted_at = now() WHERE lifted_at IS NULL RETURNING id
  ) SELECT EXISTS (SELECT FROM lifted)
$$;

-- Reserve: moves money from available to reserved for a cause, once per cause; what is not covered is refused, in order
-- of arrival. `reserved` is true where this money is set aside for it, also when an earlier call did it. It is the one
-- door that money leaves by: while payments out are halted nothing new passes, and `halted` says so.
DROP FUNCTION reserve_many;
CREATE FUNCTION reserve_many(merchant_ids int[], causes text[], amounts bigint[])
RETURNS TABLE (place int, reserved boolean, halted boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchant_ids) ORDER BY b.merchant_id FOR UPDATE;
  RETURN QUERY
  WITH RECURSIVE halt AS MATERIALIZED (
    -- Read after the locks and in the statement that moves: whoever waited meets a halt that came meanwhile.
    SELECT EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) AS on
  ), item AS (
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
    FROM walk w JOIN item i USING (place), halt WHERE w.taken AND NOT halt.on ORDER BY i.merchant_id, i.place
    RETURNING cause, merchant_id, amount
  ), answer AS (
    SELECT i.place, (i.cause, i.merchant_id, i.amount) IN (SELECT moved.cause, moved.merchant_id, moved.amount FROM moved)
      OR EXISTS (SELECT FROM movement m WHERE m.cause = i.cause AND m.step = 'reserve'
        AND m.merchant_id = i.merchant_id AND m.amount = i.amount) AS reserved
    FROM item i
  )
  SELECT a.place, a.reserved, halt.on AND NOT a.reserved FROM answer a, halt ORDER BY a.place;
END $$;

-- The transaction that a movement is about; null where it is about something else.
CREATE FUNCTION transaction_of(cause text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN cause LIKE 'transaction:_%' AND length(cause) <= 30 AND translate(substr(cause, 13), '0123456789', '') = ''
    THEN substr(cause, 13)::bigint END
$$;

-- The event that tells that a collection came into a status.
CREATE FUNCTION event_of(status text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE status WHEN 'success' THEN 'payment_received' ELSE 'payment_' || status END
$$;

-- The audit: eight invariants that the rows alone prove, in one snapshot. No row means that they hold. `whole` begins at
-- the first row; else only what was written after the auditor's point is read, and its counterparts.
CREATE FUNCTION audit_ledger(whole boolean) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' AS $$
#variable_conflict use_column
DECLARE
  since audit_point := (SELECT p FROM audit_point p WHERE NOT whole);
  since_movement bigint := coalesce(since.movement_id, 0);
  since_event bigint := coalesce(since.event_id, 0);
  before_event bigint := coalesce(since.event_id_before, 0);
  all_of_it boolean := since IS NULL;
  touched bigint[];
  causes text[];
  changes text[] := ARRAY(
    SELECT event_of('pending') UNION SELECT event_of(m.to_status) FROM lifecycle_move m WHERE m.lifecycle = 'transaction');
BEGIN
  IF NOT all_of_it THEN
    touched := ARRAY(
      SELECT (e.data->>'transaction_id')::bigint FROM event e WHERE e.id > since_event AND e.data ? 'transaction_id'
      UNION SELECT transaction_of(m.cause) FROM movement m WHERE m.id > since_movement AND m.cause LIKE 'transaction:%');
    causes := ARRAY(SELECT 'transaction:' || id FROM unnest(touched) id);
  END IF;

  RETURN QUERY
  WITH proven AS (
    SELECT p.merchant_id, p.available, p.reserved FROM audit_proven p WHERE NOT all_of_it
  ), moved AS (
    SELECT m.merchant_id,
      sum(CASE 'available'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount ELSE 0 END) AS available,
      sum(CASE 'reserved'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount ELSE 0 END) AS reserved
    FROM movement m WHERE m.id > since_movement GROUP BY m.merchant_id
  ), rebuilt AS (
    SELECT merchant_id, coalesce(p.available, 0) + coalesce(m.available, 0) AS available,
      coalesce(p.reserved, 0) + coalesce(m.reserved, 0) AS reserved
    FROM proven p FULL JOIN moved m USING (merchant_id)
  )
  SELECT 'balances_equal_movements', merchant_id, CASE WHEN b.available IS NULL THEN 'has movements but no balance'
    ELSE format('balance says available %s, reserved %s; its movements say %s, %s', b.available, b.reserved,
      coalesce(r.available, 0), coalesce(r.reserved, 0)) END
  FROM merchant_balance b FULL JOIN rebuilt r USING (merchant_id)
  WHERE (b.available, b.reserved) IS DISTINCT FROM (coalesce(r.available, 0), coalesce(r.reserved, 0));

  RETURN QUERY
  SELECT 'no_balance_below_zero', b.merchant_id, format('available %s, reserved %s', b.available, b.reserved)
  FROM merchant_balance b WHERE b.available < 0 OR b.reserved < 0;

  RETURN QUERY
  WITH credit AS (
    SELECT m.* FROM movement m
    WHERE m.step = 'credit' AND (all_of_it OR m.id > since_movement OR m.cause = ANY (causes))
  ), paid AS (
    SELECT t.id, t.merchant_id, t.settled_amount AS amount, holder.account AS debit
    FROM transaction t JOIN (
      SELECT provider, clearing_account(provider) AS account FROM unnest(enum_range(NULL::provider)) provider OFFSET 0
    ) holder ON holder.provider = t.payment_method
    WHERE t.transaction_type = 'pay' AND t.status IN ('success', 'reversed') AND (all_of_it OR t.id = ANY (touched))
  )
  SELECT 'collections_credited_once', coalesce(p.merchant_id, c.merchant_id), CASE
    WHEN c.cause IS NULL THEN format('transaction:%s is paid but was never credited', p.id)
    WHEN p.id IS NULL THEN c.cause || ' was credited but is not paid'
    ELSE c.cause || ' was credited with another amount, account or merchant' END
  FROM paid p FULL JOIN credit c ON transaction_of(c.cause) = p.id
  WHERE (p.merchant_id, p.amount, p.debit, 'available'::ledger_account)
    IS DISTINCT FROM (c.merchant_id, c.amount, c.debit, c.credit);

  RETURN QUERY
  SELECT 'reservations_end_once', ended.merchant_id, ended.cause || ' ended otherwise than it was reserved'
  FROM movement ended LEFT JOIN movement held ON held.cause = ended.cause AND held.step = 'reserve'
  WHERE ended.step IN ('post', 'void') AND ended.id > since_movement
    AND (ended.merchant_id, ended.amount, ended.debit) IS DISTINCT FROM (held.merchant_id, held.amount, held.credit)
  UNION ALL
  SELECT 'reservations_end_once', posted.merchant_id, posted.cause || ' was paid out and given back'
  FROM movement posted JOIN movement voided ON voided.cause = posted.cause AND voided.step = 'void'
  WHERE posted.step = 'post' AND greatest(posted.id, voided.id) > since_movement
  UNION ALL
  SELECT 'reservations_end_once', held.merchant_id, format('%s is %s, and its money still reserved', held.cause, t.status)
  FROM movement held JOIN transaction t ON t.id = transaction_of(held.cause)
  WHERE held.step = 'reserve' AND t.status NOT IN ('pending', 'processing')
    AND (all_of_it OR held.cause = ANY (causes))
    AND NOT EXISTS (SELECT FROM movement e WHERE e.cause = held.cause AND e.step IN ('post', 'void'));

  RETURN QUERY
  SELECT 'events_tell_every_change', h.merchant_id, format('positions end at %s, with %s of %s events after %s',
    h.position, found.count, h.position - found.since, found.since)
  FROM stream_head h
  LEFT JOIN (SELECT * FROM audit_proven WHERE NOT all_of_it) p USING (merchant_id)
  CROSS JOIN LATERAL (
    SELECT coalesce(p.position, 0) AS since, count(*) AS count, coalesce(max(e.position), 0) AS last
    FROM event e WHERE e.merchant_id = h.merchant_id AND e.position > coalesce(p.position, 0)
  ) found
  WHERE (all_of_it OR h.position <> coalesce(p.position, 0))
    AND (found.count <> h.position - found.since OR found.last <> h.position);

  -- A chain holds where the hashes of what was told cancel out but for the last one: each event begins where the one
  -- before it ended, none is missing, and none is told twice.
  RETURN QUERY
  WITH lawful AS MATERIALIZED (
    SELECT event_of(m.to_status) AS type, m.from_status AS was, m.to_status AS status
    FROM lifecycle_move m WHERE m.lifecycle = 'transaction'
    UNION ALL SELECT 'payment_pending', '', 'pending'
  ), told AS (
    SELECT c.transaction_id, min(c.merchant_id) AS merchant_id, max(c.merchant_id) AS merchant_id_too, min(c.id) AS first_id,
      count(*) FILTER (WHERE c.was = '') AS begun,
      bool_and(((c.type, c.was, c.status) IN (SELECT l.type, l.was, l.status FROM lawful l)) IS TRUE) AS lawful,
      sum(hashtext(c.status)::bigint - CASE c.was WHEN '' THEN 0 ELSE hashtext(c.was) END) AS net
    FROM (
      SELECT e.id, e.merchant_id, e.type, (e.data->>'transaction_id')::bigint AS transaction_id, e.data->>'status' AS status,
        coalesce(e.data->>'previous_status', '') AS was
      FROM event e WHERE e.id > since_event AND e.type = ANY (changes)
      OFFSET 0
    ) c GROUP BY c.transaction_id
  )
  SELECT 'events_tell_every_change', coalesce(t.merchant_id, told.merchant_id), CASE
    WHEN t.id IS NULL THEN format('events tell of transaction:%s, which is not there', told.transaction_id)
    ELSE format('its events do not tell how transaction:%s became %s', t.id, t.status) END
  -- What was told of it before the point ended where its first event since begins; the whole proof takes no such word.
  FROM told LEFT JOIN event first ON NOT all_of_it AND told.begun = 0 AND first.id = told.first_id FULL JOIN (
    SELECT * FROM transaction WHERE transaction_type = 'pay' AND (all_of_it OR id = ANY (touched))
  ) t ON t.id = told.transaction_id
  WHERE CASE WHEN told.transaction_id IS NULL THEN all_of_it ELSE
    (told.merchant_id, told.merchant_id_too) IS DISTINCT FROM (t.merchant_id, t.merchant_id)
    OR NOT told.lawful OR told.begun <> 1 AND (all_of_it OR told.begun <> 0)
    OR told.net + CASE told.begun WHEN 0 THEN hashtext(first.data->>'previous_status') ELSE 0 END <> hashtext(t.status::text) END
  UNION ALL
  SELECT 'events_tell_every_change', c.merchant_id, 'no event tells of the credit of ' || c.cause
  FROM movement c
  WHERE NOT all_of_it AND c.step = 'credit' AND c.id > since_movement AND NOT EXISTS (
    SELECT FROM event e WHERE e.id > before_event AND e.type = 'payment_received'
      AND (e.data->>'transaction_id')::bigint = transaction_of(c.cause));

  RETURN QUERY
  SELECT 'statuses_agree_with_requests', t.merchant_id, format('transaction:%s is %s, and %s', t.id, t.status,
    CASE WHEN r.id IS NULL THEN 'nothing was asked of the operator' ELSE format('its request over %s by %s is %s, asked about %s',
      r.amount, r.provider, r.state, coalesce(r.next_check_at::text, 'no more')) END)
  FROM transaction t
  LEFT JOIN operator_request r ON r.merchant_id = t.merchant_id AND r.transaction_id = t.id AND r.kind = 'collect'
  WHERE t.transaction_type = 'pay' AND (all_of_it OR t.id = ANY (touched))
    AND (r.amount = t.amount AND r.provider = t.payment_method AND CASE t.status
      WHEN 'success' THEN r.state = 'settled'
      WHEN 'reversed' THEN r.state = 'settled'
      WHEN 'failed' THEN r.state IN ('refused', 'closed')
      WHEN 'cancelled' THEN r.state = 'closed'
      WHEN 'expired' THEN r.state NOT IN ('settled', 'refused')
      -- Not decided: then somebody will ask.
      ELSE r.state IN ('sending', 'unsent', 'accepted', 'doubt') AND r.next_check_at IS NOT NULL END) IS NOT TRUE
  UNION ALL
  SELECT 'statuses_agree_with_requests', r.merchant_id, format('transaction:%s was asked of the operator twice', r.transaction_id)
  FROM operator_request r JOIN operator_request other
    ON other.transaction_id = r.transaction_id AND other.merchant_id = r.merchant_id AND other.kind = r.kind AND other.id < r.id
  WHERE all_of_it OR (r.merchant_id, r.transaction_id) IN (
    SELECT t.merchant_id, t.id FROM transaction t WHERE t.id = ANY (touched));

  RETURN QUERY
  SELECT 'movements_have_one_cause', m.merchant_id, format('%s has %s twice', m.cause, m.step)
  FROM movement m JOIN movement other ON other.cause = m.cause AND other.step = m.step AND other.id < m.id
  WHERE m.id > since_movement
  UNION ALL
  SELECT 'movements_have_one_cause', m.merchant_id, format('%s from %s to %s for %s: nothing of ours moves so', m.step,
    m.debit, m.credit, m.cause)
  FROM movement m LEFT JOIN transaction t ON t.id = transaction_of(m.cause)
  WHERE m.id > since_movement AND NOT (CASE m.step
    WHEN 'fund' THEN m.cause LIKE 'funding:%' AND m.debit = 'funding' AND m.credit = 'available'
    WHEN 'credit' THEN t.merchant_id = m.merchant_id AND m.credit = 'available' AND m.debit::text LIKE 'clearing\_%'
    ELSE (t.merchant_id = m.merchant_id OR m.cause ~ '^payout:.') AND (m.debit, m.credit::text) IN (
      SELECT 'available'::ledger_account, 'reserved' WHERE m.step = 'reserve'
      UNION ALL SELECT 'reserved', 'available' WHERE m.step = 'void'
      UNION ALL SELECT 'reserved', m.credit::text WHERE m.step = 'post' AND m.credit::text LIKE 'clearing\_%') END IS TRUE);

  RETURN QUERY
  SELECT 'references_are_unique', t.merchant_id, format('transaction:%s and transaction:%s have the same reference', other.id, t.id)
  FROM transaction t JOIN transaction other
    ON other.reference = t.reference AND other.merchant_id = t.merchant_id AND other.id < t.id
  WHERE all_of_it OR t.id = ANY (touched);
END $$;

-- Notes that the books were just proven, in the transaction and snapshot that proved them. The point moves on to where the
-- end was a while ago: whatever wrote before that has ended since, so that nothing appears before it any more.
CREATE FUNCTION note_audit(whole boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  point audit_point;
  end_movement bigint := coalesce(pg_sequence_last_value('movement_id_seq'), 0);
  end_event bigint := coalesce(pg_sequence_last_value('event_id_seq'), 0);
  summed_to bigint;
BEGIN
  INSERT INTO audit_point (next_movement_id, next_event_id) VALUES (end_movement, end_event) ON CONFLICT DO NOTHING;
  SELECT * INTO point FROM audit_point FOR UPDATE;
  IF whole THEN
    summed_to := 0;
    DELETE FROM audit_proven;
    UPDATE audit_point SET whole_proven_at = now();
  ELSE
    summed_to := point.movement_id;
  END IF;
  IF point.next_noted_at <= now() - interval '30 s' THEN
    UPDATE audit_point
    SET movement_id = next_movement_id, event_id = next_event_id, event_id_before = event_id,
      next_movement_id = end_movement, next_event_id = end_event, next_noted_at = now()
    RETURNING * INTO point;
  END IF;
  INSERT INTO audit_proven AS p (merchant_id, available, reserved, position)
  SELECT merchant_id, coalesce(m.available, 0), coalesce(m.reserved, 0), coalesce(h.position, 0)
  FROM (
    SELECT merchant_id,
      sum(CASE 'available'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount ELSE 0 END) AS available,
      sum(CASE 'reserved'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount ELSE 0 END) AS reserved
    FROM movement WHERE id > summed_to AND id <= point.movement_id GROUP BY merchant_id
  ) m FULL JOIN (
    SELECT s.* FROM stream_head s LEFT JOIN audit_proven a USING (merchant_id)
    WHERE s.position IS DISTINCT FROM a.position
  ) h USING (merchant_id)
  ON CONFLICT (merchant_id) DO UPDATE
  SET available = p.available + excluded.available, reserved = p.reserved + excluded.reserved,
    position = greatest(p.position, excluded.position);
END $$;

DROP FUNCTION verify_ledger;
REVOKE EXECUTE ON FUNCTION halt_payments_out, resume_payments_out, reserve_many, transaction_of, event_of, audit_ledger, note_audit
  FROM PUBLIC;
GRANT EXECUTE ON FUNCTION halt_payments_out, resume_payments_out, reserve_many, audit_ledger, note_audit TO payments_service;
