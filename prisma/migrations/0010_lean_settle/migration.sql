-- The way of a settlement, from its statement to the number of its event, at a cost that grows with what there is to do.
-- What it does stays as it was; what was done once per row is done once per statement.

-- Written so that it becomes a part of the statement that asks, instead of a call per row.
CREATE OR REPLACE FUNCTION clearing_account(provider provider) RETURNS ledger_account LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE provider
    WHEN 'OperatorA' THEN 'clearing_operator_a'::ledger_account
    WHEN 'OperatorB' THEN 'clearing_operator_b'
    WHEN 'OperatorC' THEN 'clearing_operator_c'
    WHEN 'OperatorD' THEN 'clearing_operator_d'
  END
$$;

-- A transaction is paid or ends once: its page has room for that, and no index is touched.
ALTER TABLE "transaction" SET (fillfactor = 50);

-- A transaction moves along its lifecycle only, and what it is about never changes: the second is asked row by row
-- without a call, the first once for all rows of a statement.
DROP TRIGGER "transaction_guard" ON "transaction";
CREATE OR REPLACE FUNCTION guard_transaction() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'transaction %: what it is about never changes', OLD.id USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER "transaction_guard" BEFORE UPDATE ON "transaction" FOR EACH ROW WHEN (
  (OLD.id, OLD.merchant_id, OLD.transaction_type, OLD.payment_method, OLD.customer_phone, OLD.amount, OLD.reference)
  IS DISTINCT FROM
  (NEW.id, NEW.merchant_id, NEW.transaction_type, NEW.payment_method, NEW.customer_phone, NEW.amount, NEW.reference)
) EXECUTE FUNCTION guard_transaction();
CREATE FUNCTION guard_moves() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  moved record;
BEGIN
  SELECT d.id, d.status AS was, i.status INTO moved
  FROM deleted d JOIN inserted i USING (id)
  WHERE i.status <> d.status AND (d.status::text, i.status::text) NOT IN (
    SELECT m.from_status, m.to_status FROM public.lifecycle_move m WHERE m.lifecycle = 'transaction')
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'transaction %: % never becomes %', moved.id, moved.was, moved.status
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "transaction_moved" AFTER UPDATE ON "transaction" REFERENCING NEW TABLE AS inserted OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION guard_moves();

-- An event is added unnumbered and gets its position once; nothing else about it changes.
DROP TRIGGER "event_guard" ON "event";
CREATE OR REPLACE FUNCTION guard_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'event %: it happened, and never changes', OLD.id USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER "event_guard" BEFORE UPDATE ON "event" FOR EACH ROW WHEN (NOT (
  OLD.position IS NULL AND NEW.position IS NOT NULL
  AND (OLD.id, OLD.merchant_id, OLD.type, OLD.data, OLD.created_at)
    IS NOT DISTINCT FROM (NEW.id, NEW.merchant_id, NEW.type, NEW.data, NEW.created_at)
)) EXECUTE FUNCTION guard_event();

-- As before; only the balances concerned are read.
CREATE OR REPLACE FUNCTION apply_movements() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
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
  WHERE b.merchant_id = change.merchant_id AND b.merchant_id = ANY (merchants);
  GET DIAGNOSTICS applied = ROW_COUNT;
  IF applied <> cardinality(merchants) THEN
    RAISE EXCEPTION 'a merchant without a balance row' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;

-- As before, with one look at the time.
CREATE OR REPLACE FUNCTION settle_many(
  transaction_ids bigint[], to_statuses transaction_status[], sources text[], amounts bigint[], operator_references text[],
  reasons text[], messages text[], evidences jsonb[], late_check_ms bigint, reversal_check_ms bigint[] DEFAULT NULL
) RETURNS TABLE (
  place int, transaction_id bigint, moved boolean, from_status transaction_status, status transaction_status, late boolean
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  at timestamptz := service_now();
BEGIN
  PERFORM FROM transaction t WHERE t.id = ANY (transaction_ids) ORDER BY t.id FOR UPDATE;
  RETURN QUERY
  WITH item AS (
    SELECT i.*, i.ordinality::int AS place
    FROM unnest(transaction_ids, to_statuses, sources, amounts, operator_references, reasons, messages, evidences,
      reversal_check_ms)
      WITH ORDINALITY AS i (id, to_status, source, amount, operator_reference, reason, message, evidence, watch_ms, ordinality)
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
    SET status = a.to_status, late = t.late OR a.was_over, settled_at = at, evidence_source = a.source,
      operator_reference = coalesce(a.operator_reference, t.operator_reference),
      failure_reason = a.reason, failure_message = a.message,
      settled_amount = CASE WHEN a.to_status = 'success' THEN coalesce(a.amount, t.amount) ELSE t.settled_amount END
    FROM allowed a WHERE t.id = a.id
    RETURNING t.*, a.place, a.was, a.evidence, a.watch_ms
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
      -- What was paid may be taken back: of some operators only a question tells.
      next_check_at = CASE
        WHEN c.status = 'success' THEN at + c.watch_ms * interval '1 millisecond'
        WHEN c.status = 'expired' AND r.next_check_at <= at THEN r.next_check_at
        WHEN c.status = 'expired' THEN at + late_check_ms * interval '1 millisecond' END,
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

-- As before, in one pass: a merchant's last position stands beside its events, so they are joined with nothing but
-- themselves, by their ids. The table's statistics, which mostly say that nothing waits, do not matter.
CREATE OR REPLACE FUNCTION sequence_events(take int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  merchants int[];
  numbered_count int;
BEGIN
  PERFORM pg_advisory_xact_lock(72707370);
  WITH fresh AS (
    SELECT e.id, e.merchant_id FROM event e WHERE e.position IS NULL ORDER BY e.id LIMIT take
  ), head AS (
    INSERT INTO stream_head AS h (merchant_id, position)
    SELECT merchant_id, count(*) FROM fresh GROUP BY merchant_id ORDER BY merchant_id
    ON CONFLICT (merchant_id) DO UPDATE SET position = h.position + excluded.position
    RETURNING h.merchant_id, h.position
  ), numbered AS (
    SELECT id, max(last_position) OVER (PARTITION BY merchant_id)
      - count(id) OVER (PARTITION BY merchant_id ORDER BY id DESC ROWS UNBOUNDED PRECEDING) + 1 AS position
    FROM (
      SELECT id, merchant_id, NULL::bigint AS last_position FROM fresh
      UNION ALL SELECT NULL, merchant_id, position FROM head
    ) AS either
  ), placed AS (
    UPDATE event e SET position = numbered.position FROM numbered WHERE e.id = numbered.id
    RETURNING e.merchant_id
  )
  SELECT array_agg(DISTINCT merchant_id), count(*) INTO merchants, numbered_count FROM placed;
  IF numbered_count > 0 THEN
    -- A notice holds 8,000 bytes; a longer list means "look at all of yours".
    PERFORM pg_notify('events', CASE WHEN cardinality(merchants) <= 500 THEN array_to_string(merchants, ',') ELSE '*' END);
  END IF;
  RETURN numbered_count;
END $$;

-- As before. The statistics of the changes mostly say that there are none: what is taken is found by its place, and no
-- join compares each with each.
CREATE OR REPLACE FUNCTION fold_transaction_counts(take int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
SET enable_nestloop = off AS $$
DECLARE
  folded int;
BEGIN
  IF NOT pg_try_advisory_xact_lock(72707374) THEN RETURN 0; END IF;
  WITH taken AS (
    DELETE FROM transaction_count_change c
    WHERE c.ctid = ANY (ARRAY(SELECT ctid FROM transaction_count_change ORDER BY merchant_id, id LIMIT take))
    RETURNING c.*
  ), bucket AS (
    SELECT merchant_id, bucket * 1024 AS first_id, sum(n)::bigint AS n FROM taken GROUP BY merchant_id, bucket
  ), last_block AS (
    SELECT merchant.merchant_id, coalesce(b.first_id, 0) AS first_id, coalesce(b.last_id, -1) AS last_id, coalesce(b.n, 0) AS n
    FROM (SELECT DISTINCT merchant_id FROM taken) AS merchant
    LEFT JOIN LATERAL (
      SELECT * FROM transaction_block k WHERE k.merchant_id = merchant.merchant_id ORDER BY k.first_id DESC LIMIT 1
    ) AS b ON true
  ), ahead AS (
    SELECT bucket.*, l.first_id AS last_first_id,
      div(l.n + sum(bucket.n) OVER (PARTITION BY merchant_id ORDER BY bucket.first_id) - bucket.n, 2048) AS nth
    FROM bucket JOIN last_block l USING (merchant_id) WHERE bucket.first_id > l.last_id
  ), placed AS (
    SELECT merchant_id, first_id, n,
      CASE WHEN nth = 0 THEN last_first_id ELSE min(first_id) OVER (PARTITION BY merchant_id, nth) END AS block
    FROM ahead
    UNION ALL
    SELECT bucket.merchant_id, bucket.first_id, bucket.n, (
      SELECT max(k.first_id) FROM transaction_block k
      WHERE k.merchant_id = bucket.merchant_id AND k.first_id <= bucket.first_id)
    FROM bucket JOIN last_block l USING (merchant_id) WHERE bucket.first_id <= l.last_id
  ), blocks AS (
    INSERT INTO transaction_block AS k (merchant_id, first_id, last_id, n)
    SELECT merchant_id, block, max(first_id) + 1023, sum(n) FROM placed GROUP BY merchant_id, block
    ON CONFLICT (merchant_id, first_id) DO UPDATE
      SET last_id = greatest(k.last_id, excluded.last_id), n = k.n + excluded.n
      WHERE excluded.n <> 0 OR excluded.last_id > k.last_id
  ), block_counts AS (
    INSERT INTO transaction_block_count AS k (merchant_id, first_id, transaction_type, payment_method, status, n)
    SELECT t.merchant_id, p.block, t.transaction_type, t.payment_method, t.status, sum(t.n)
    FROM taken t JOIN placed p ON p.merchant_id = t.merchant_id AND p.first_id = t.bucket * 1024
    GROUP BY 1, 2, 3, 4, 5 HAVING sum(t.n) <> 0
    ON CONFLICT (merchant_id, first_id, transaction_type, payment_method, status) DO UPDATE SET n = k.n + excluded.n
  ), counts AS (
    INSERT INTO transaction_count AS k (merchant_id, transaction_type, payment_method, status, n)
    SELECT merchant_id, transaction_type, payment_method, status, sum(n) FROM taken
    GROUP BY 1, 2, 3, 4 HAVING sum(n) <> 0
    ON CONFLICT (merchant_id, transaction_type, payment_method, status) DO UPDATE SET n = k.n + excluded.n
  )
  SELECT count(*) INTO folded FROM taken;
  RETURN folded;
END $$;

REVOKE EXECUTE ON FUNCTION guard_moves FROM PUBLIC;
