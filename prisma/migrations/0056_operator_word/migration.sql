-- CreateEnum
CREATE TYPE "settlement_exception_state" AS ENUM ('open', 'credited', 'returned');

-- AlterEnum
ALTER TYPE "ledger_account" ADD VALUE 'unallocated';

-- AlterEnum
-- This migration adds more than one value to an enum.
-- With PostgreSQL versions 11 and earlier, this is not possible
-- in a single migration. This can be worked around by creating
-- multiple migrations, each migration adding only one value to
-- the enum.


ALTER TYPE "ledger_step" ADD VALUE 'excess';
ALTER TYPE "ledger_step" ADD VALUE 'excess_credit';
ALTER TYPE "ledger_step" ADD VALUE 'excess_return';

-- CreateTable
CREATE TABLE "settlement_exception" (
    "id" SERIAL NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "transaction_id" BIGINT NOT NULL,
    "asked_amount" BIGINT NOT NULL,
    "said_amount" BIGINT NOT NULL,
    "state" "settlement_exception_state" NOT NULL DEFAULT 'open',
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "decided_by" TEXT,
    "reason" TEXT,
    "decided_at" TIMESTAMPTZ(3),

    CONSTRAINT "settlement_exception_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "settlement_exception_merchant_id_transaction_id_key" ON "settlement_exception"("merchant_id", "transaction_id");

-- AddForeignKey
ALTER TABLE "settlement_exception" ADD CONSTRAINT "settlement_exception_merchant_id_transaction_id_fkey" FOREIGN KEY ("merchant_id", "transaction_id") REFERENCES "transaction"("merchant_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- Below: written by hand. What the schema language cannot say.

-- No amount is larger than a JSON number holds exactly, 2^53 - 1: no balance can overflow, and every balance can be answered.
ALTER TABLE "movement" ADD CONSTRAINT "movement_amount_max" CHECK ("amount" <= 9007199254740991) NOT VALID;
ALTER TABLE "merchant_balance"
  ADD CONSTRAINT "merchant_balance_max" CHECK ("available" <= 9007199254740991 - "reserved" AND "receivable" <= 9007199254740991)
    NOT VALID;
ALTER TABLE "payout" ADD CONSTRAINT "payout_settled_amount_max" CHECK ("settled_amount" <= "amount") NOT VALID;
-- An operator credits at most what was asked. A payment that was settled before this rule may still be reversed.
DO $$ BEGIN
  EXECUTE format('ALTER TABLE transaction ADD CONSTRAINT transaction_settled_amount_max
    CHECK (settled_amount <= amount OR settled_at < %L) NOT VALID', service_now());
END $$;
ALTER TABLE "settlement_exception"
  ADD CONSTRAINT "settlement_exception_amounts" CHECK (
    "asked_amount" > 0 AND "said_amount" > "asked_amount" AND "said_amount" <= 9007199254740991),
  ADD CONSTRAINT "settlement_exception_decided" CHECK (
    ("state" <> 'open') = ("decided_at" IS NOT NULL) AND ("decided_at" IS NOT NULL) = ("decided_by" IS NOT NULL)
    AND ("decided_at" IS NOT NULL) = ("reason" IS NOT NULL)),
  ADD CONSTRAINT "settlement_exception_words" CHECK (
    char_length("decided_by") BETWEEN 1 AND 200 AND char_length("reason") BETWEEN 1 AND 1000);
SELECT wall_in('settlement_exception');
GRANT SELECT ON "settlement_exception" TO payments_service;

-- As before, except that the merchant is credited with at most what was asked. The rest that the operator says was paid is
-- booked to `unallocated` and waits for a person, who decides by `decide_excess`.
CREATE OR REPLACE FUNCTION settle_many(
  transaction_ids bigint[], to_statuses transaction_status[], sources text[], amounts bigint[], operator_references text[],
  reasons text[], messages text[], evidences jsonb[], late_check_ms bigint, reversal_check_ms bigint[] DEFAULT NULL,
  attempts smallint[] DEFAULT NULL
) RETURNS TABLE (
  place int, transaction_id bigint, moved boolean, from_status transaction_status, status transaction_status, late boolean
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
SET enable_nestloop = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  at timestamptz := service_now();
  -- What only the word of one send ends.
  fenced bigint[] := ARRAY(SELECT i.id FROM unnest(transaction_ids, attempts) AS i (id, attempt) WHERE i.attempt IS NOT NULL);
  links int[];
BEGIN
  -- All are held: a condition on the link would choose which.
  links := array_remove(ARRAY(
    SELECT t.payment_link_id FROM transaction t WHERE t.id = ANY (transaction_ids) ORDER BY t.id FOR UPDATE), NULL);
  IF links <> '{}' THEN PERFORM FROM payment_link l WHERE l.id = ANY (links) ORDER BY l.id FOR NO KEY UPDATE; END IF;
  IF fenced <> '{}' THEN
    PERFORM FROM operator_request r WHERE r.transaction_id = ANY (fenced) ORDER BY r.transaction_id FOR NO KEY UPDATE;
  END IF;
  RETURN QUERY
  WITH item AS MATERIALIZED (
    SELECT i.*, i.ordinality::int AS place, i.attempt IS NOT NULL AND NOT EXISTS (
        SELECT FROM operator_request r
        WHERE r.transaction_id = ANY (fenced) AND r.transaction_id = i.id AND r.kind = 'collect'
          AND r.attempt = i.attempt AND r.state <> 'accepted') AS overtaken
    FROM unnest(transaction_ids, to_statuses, sources, amounts, operator_references, reasons, messages, evidences,
      reversal_check_ms, attempts)
      WITH ORDINALITY AS i (id, to_status, source, amount, operator_reference, reason, message, evidence, watch_ms, attempt,
        ordinality)
  ), held AS MATERIALIZED (
    SELECT t.id, t.status, t.transaction_type, t.late FROM transaction t WHERE t.id = ANY (transaction_ids)
  ), chosen AS MATERIALIZED (
    SELECT DISTINCT ON (i.id) i.*, t.status AS was, t.status IN ('expired', 'failed', 'cancelled') AS was_over,
      t.transaction_type AS type
    FROM item i JOIN held t ON t.id = i.id AND NOT i.overtaken
    ORDER BY i.id, i.place
  ), allowed AS (
    SELECT c.* FROM chosen c
    JOIN lifecycle_move m ON m.lifecycle = 'transaction' AND m.from_status = c.was::text AND m.to_status = c.to_status::text
    -- What is not an outcome (processing, reversed) is never settled: it takes other movements.
    WHERE c.type = 'pay' AND c.to_status IN ('success', 'failed', 'cancelled', 'expired')
      AND (NOT c.was_over OR c.source IN ('initiate', 'query'))
  ), changed AS (
    UPDATE transaction t
    SET status = a.to_status, late = t.late OR a.was_over, settled_at = at, evidence_source = a.source,
      operator_reference = coalesce(a.operator_reference, t.operator_reference),
      failure_reason = a.reason, failure_message = a.message,
      settled_amount = CASE WHEN a.to_status = 'success' THEN least(a.amount, t.amount) ELSE t.settled_amount END
    FROM allowed a WHERE t.id = a.id AND t.id = ANY (transaction_ids)
    RETURNING t.*, a.place, a.was, a.evidence, a.watch_ms,
      CASE WHEN a.to_status = 'success' THEN greatest(a.amount - t.amount, 0) END AS excess
  ), credited AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'transaction:' || c.id, side.step, clearing_account(c.payment_method), side.account,
      side.amount, c.settled_at
    FROM changed c CROSS JOIN LATERAL (VALUES
      ('credit'::ledger_step, 'available'::ledger_account, c.settled_amount),
      ('excess'::ledger_step, 'unallocated'::ledger_account, c.excess)
    ) AS side (step, account, amount)
    WHERE c.status = 'success' AND side.amount > 0 ORDER BY c.merchant_id, c.id
  ), excepted AS (
    INSERT INTO settlement_exception (merchant_id, transaction_id, asked_amount, said_amount, created_at)
    SELECT c.merchant_id, c.id, c.amount, c.amount + c.excess, c.settled_at
    FROM changed c WHERE c.status = 'success' AND c.excess > 0 ORDER BY c.merchant_id, c.id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id,
      CASE c.status WHEN 'success' THEN 'payment_received' ELSE 'payment_' || c.status::text END,
      jsonb_strip_nulls(jsonb_build_object(
        'transaction_id', c.id, 'reference', c.reference, 'amount', coalesce(c.settled_amount, c.amount),
        'currency', 'XOF', 'payment_method', c.payment_method, 'customer_phone', c.customer_phone, 'status', c.status,
        'previous_status', c.was, 'late', c.late, 'failure_reason', c.failure_reason,
        'excess', nullif(c.excess, 0))), c.settled_at
    FROM changed c ORDER BY c.merchant_id, c.id
  ), answered AS (
    UPDATE operator_request r
    SET state = CASE WHEN c.status = 'success' THEN 'settled'
          WHEN c.status = 'failed' AND c.evidence_source <> 'service' THEN 'refused'
          WHEN c.status = 'expired' THEN r.state ELSE 'closed' END::operator_request_state,
      -- What a callback made due stays due, unless it claims what was answered; it may have come while this waited.
      -- What expired is still asked about for a while: late money is real.
      -- What was paid may be taken back: of some operators only a question tells.
      next_check_at = CASE
        WHEN r.next_check_at <= at + (clock_timestamp() - now()) AND (c.status = 'expired' OR r.handle->>'claimed' <>
          CASE c.status WHEN 'success' THEN 'settled' ELSE 'refused' END) THEN r.next_check_at
        WHEN c.status = 'success' THEN at + c.watch_ms * interval '1 millisecond'
        WHEN c.status = 'expired' THEN at + late_check_ms * interval '1 millisecond' END,
      evidence = coalesce(c.evidence, r.evidence)
    FROM changed c
    WHERE r.transaction_id = c.id AND r.transaction_id = ANY (transaction_ids) AND r.merchant_id = c.merchant_id AND r.kind = 'collect'
  )
  SELECT i.place, i.id, c.id IS NOT NULL AND c.place = i.place, h.status, coalesce(c.status, h.status), coalesce(c.late, h.late)
  FROM item i
  JOIN held h ON h.id = i.id
  LEFT JOIN changed c ON c.id = i.id
  ORDER BY i.place;
END $$;

-- As before, except that what stands in `unallocated` goes back to the operator too, and what a person credited from there.
-- `amount` is all that went back to the operator.
DROP FUNCTION reverse_many(bigint[], text[], jsonb[]);
CREATE FUNCTION reverse_many(transaction_ids bigint[], sources text[], evidences jsonb[])
RETURNS TABLE (place int, moved boolean, status transaction_status, shortfall bigint, amount bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  at timestamptz;
BEGIN
  PERFORM FROM transaction t WHERE t.id = ANY (transaction_ids) ORDER BY t.id FOR UPDATE;
  PERFORM FROM operator_request r WHERE r.transaction_id = ANY (transaction_ids) ORDER BY r.transaction_id FOR NO KEY UPDATE;
  PERFORM FROM merchant_balance b
  WHERE b.merchant_id IN (SELECT t.merchant_id FROM transaction t WHERE t.id = ANY (transaction_ids))
  ORDER BY b.merchant_id FOR UPDATE;
  at := service_now() + (clock_timestamp() - now());
  RETURN QUERY
  WITH item AS (
    SELECT i.*, i.ordinality::int AS place
    FROM unnest(transaction_ids, sources, evidences) WITH ORDINALITY AS i (id, source, evidence, ordinality)
  ), chosen AS (
    SELECT DISTINCT ON (i.id) i.* FROM item i ORDER BY i.id, i.place
  ), allowed AS (
    SELECT c.id, c.place, c.evidence, t.merchant_id, t.status AS was, x.id AS exception_id,
      -- What a person credited beyond what was asked goes back like the rest.
      t.settled_amount + CASE x.state WHEN 'credited' THEN x.said_amount - x.asked_amount ELSE 0 END AS amount,
      CASE x.state WHEN 'open' THEN x.said_amount - x.asked_amount ELSE 0 END AS unallocated
    FROM chosen c
    JOIN transaction t ON t.id = ANY (transaction_ids) AND t.id = c.id AND t.transaction_type = 'pay'
    LEFT JOIN settlement_exception x ON x.merchant_id = t.merchant_id AND x.transaction_id = t.id
    WHERE c.source = 'query' AND CASE t.status
      -- Refunds gave all of it back to the payer, and the operator takes it back as well: its own way, once.
      WHEN 'reversed' THEN NOT EXISTS (
        SELECT FROM movement m WHERE m.cause = 'transaction:' || t.id AND m.step IN ('reverse', 'shortfall'))
      ELSE EXISTS (
        SELECT FROM lifecycle_move m
        WHERE m.lifecycle = 'transaction' AND m.from_status = t.status::text AND m.to_status = 'reversed') END
  ), split AS (
    SELECT a.*, greatest(0, least(a.amount, b.available - coalesce(sum(a.amount) OVER (
      PARTITION BY a.merchant_id ORDER BY a.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)))::bigint AS taken
    FROM allowed a JOIN merchant_balance b USING (merchant_id)
  ), changed AS (
    UPDATE transaction t SET status = 'reversed', evidence_source = 'query'
    FROM split s WHERE t.id = ANY (transaction_ids) AND t.id = s.id
    RETURNING t.*, s.place, s.was, s.evidence, s.taken, s.amount - s.taken AS rest, s.unallocated, s.exception_id
  ), given_back AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'transaction:' || c.id, side.step, side.account, clearing_account(c.payment_method), side.amount, at
    FROM changed c CROSS JOIN LATERAL (VALUES
      ('reverse'::ledger_step, 'available'::ledger_account, c.taken),
      ('shortfall'::ledger_step, 'suspense'::ledger_account, c.rest),
      ('excess_return'::ledger_step, 'unallocated'::ledger_account, c.unallocated)
    ) AS side (step, account, amount)
    WHERE side.amount > 0 ORDER BY c.merchant_id, c.id
  ), closed AS (
    UPDATE settlement_exception x
    SET state = 'returned', decided_by = 'operator', reason = 'The operator took the payment back.', decided_at = at
    FROM changed c WHERE x.id = c.exception_id AND x.state = 'open'
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id, 'payment_reversed', jsonb_strip_nulls(jsonb_build_object(
      'transaction_id', c.id, 'reference', c.reference, 'amount', c.taken + c.rest, 'currency', 'XOF',
      'payment_method', c.payment_method, 'customer_phone', c.customer_phone, 'status', c.status,
      'previous_status', c.was, 'late', c.late, 'shortfall', nullif(c.rest, 0))), at
    FROM changed c ORDER BY c.merchant_id, c.id
  ), answered AS (
    UPDATE operator_request r SET next_check_at = NULL, evidence = coalesce(c.evidence, r.evidence)
    FROM changed c
    WHERE r.merchant_id = c.merchant_id AND r.transaction_id = c.id AND r.kind = 'collect'
  )
  SELECT i.place, c.id IS NOT NULL AND c.place = i.place, coalesce(c.status, t.status), c.rest, c.taken + c.rest + c.unallocated
  FROM item i
  JOIN transaction t ON t.id = ANY (transaction_ids) AND t.id = i.id
  LEFT JOIN changed c ON c.id = i.id
  ORDER BY i.place;
END $$;
REVOKE EXECUTE ON FUNCTION reverse_many FROM PUBLIC;
GRANT EXECUTE ON FUNCTION reverse_many TO payments_service;

-- Decides whose the excess of a payment is, once: `credited` gives it to the merchant, `returned` says that a person gave it
-- back to the payer through the operator. @returns `unknown` where there is no such exception, `decided` where another call
-- decided it before, else `done`
CREATE FUNCTION decide_excess(exception_id int, verdict settlement_exception_state, person text, why text)
RETURNS TABLE (outcome text, merchant_id int, transaction_id bigint, amount bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  paid transaction;
  decided settlement_exception;
BEGIN
  -- The transaction is locked first, as the functions do that settle and reverse it.
  SELECT t.* INTO paid FROM transaction t
  WHERE (t.merchant_id, t.id) IN (
    SELECT x.merchant_id, x.transaction_id FROM settlement_exception x WHERE x.id = exception_id) FOR UPDATE;
  IF NOT FOUND THEN
    RETURN QUERY SELECT 'unknown', NULL::int, NULL::bigint, NULL::bigint;
    RETURN;
  END IF;
  UPDATE settlement_exception x SET state = verdict, decided_by = person, reason = why, decided_at = at
  WHERE x.id = exception_id AND x.state = 'open' RETURNING x.* INTO decided;
  IF NOT FOUND THEN
    RETURN QUERY SELECT 'decided', paid.merchant_id, paid.id, NULL::bigint;
    RETURN;
  END IF;
  amount := decided.said_amount - decided.asked_amount;
  INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
  VALUES (paid.merchant_id, 'transaction:' || paid.id,
    CASE verdict WHEN 'credited' THEN 'excess_credit' ELSE 'excess_return' END::ledger_step, 'unallocated',
    CASE verdict WHEN 'credited' THEN 'available' ELSE clearing_account(paid.payment_method) END, amount, at);
  INSERT INTO event (merchant_id, type, data, created_at)
  VALUES (paid.merchant_id, 'payment_excess_' || verdict, jsonb_build_object(
    'transaction_id', paid.id, 'reference', paid.reference, 'amount', amount, 'currency', 'XOF',
    'payment_method', paid.payment_method, 'customer_phone', paid.customer_phone, 'status', paid.status), at);
  RETURN QUERY SELECT 'done', paid.merchant_id, paid.id, amount;
END $$;
REVOKE EXECUTE ON FUNCTION decide_excess FROM PUBLIC;
GRANT EXECUTE ON FUNCTION decide_excess TO payments_service;

-- The proof knows what is kept beyond what was asked, and that credit and excess are what the operator said.
CREATE OR REPLACE FUNCTION audit_collections(ids bigint[]) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  causes text[] := ARRAY(SELECT 'transaction:' || id FROM unnest(ids) AS id);
  changes text[] := ARRAY(
    SELECT event_of('pending') UNION SELECT event_of(m.to_status) FROM lifecycle_move m WHERE m.lifecycle = 'transaction');
BEGIN
  RETURN QUERY
  WITH credit AS (
    SELECT m.* FROM movement m
    WHERE m.step = 'credit' AND m.cause = ANY (causes)
  ), paid AS (
    SELECT t.id, t.merchant_id, t.settled_amount AS amount, holder.account AS debit
    FROM transaction t JOIN (
      SELECT provider, clearing_account(provider) AS account FROM unnest(enum_range(NULL::provider)) provider OFFSET 0
    ) holder ON holder.provider = t.payment_method
    WHERE t.transaction_type = 'pay' AND t.status IN ('success', 'reversed') AND t.id = ANY (ids)
  )
  SELECT 'collections_credited_once', coalesce(p.merchant_id, c.merchant_id), CASE
    WHEN c.cause IS NULL THEN format('transaction:%s is paid but was never credited', p.id)
    WHEN p.id IS NULL THEN c.cause || ' was credited but is not paid'
    ELSE c.cause || ' was credited with another amount, account or merchant' END
  FROM paid p FULL JOIN credit c ON transaction_of(c.cause) = p.id
  WHERE (p.merchant_id, p.amount, p.debit, 'available'::ledger_account)
    IS DISTINCT FROM (c.merchant_id, c.amount, c.debit, c.credit);

  RETURN QUERY
  WITH back AS (
    SELECT m.cause, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too, sum(m.amount)::bigint AS amount,
      min(m.credit) AS account, max(m.credit) AS account_too
    FROM movement m
    WHERE m.step IN ('reverse', 'shortfall') AND m.debit IN ('available', 'suspense') AND m.cause = ANY (causes)
    GROUP BY m.cause
  ), reversed AS (
    SELECT t.id, t.merchant_id, clearing_account(t.payment_method) AS account,
      t.settled_amount AS settled,
      -- With what a person credited beyond what was asked.
      t.settled_amount + CASE x.state WHEN 'credited' THEN x.said_amount - x.asked_amount ELSE 0 END AS amount
    FROM transaction t LEFT JOIN settlement_exception x ON x.merchant_id = t.merchant_id AND x.transaction_id = t.id
    WHERE t.transaction_type = 'pay' AND t.status = 'reversed' AND t.id = ANY (ids)
  )
  SELECT 'collections_credited_once', coalesce(r.merchant_id, b.merchant_id), CASE
    WHEN b.cause IS NULL THEN format('transaction:%s is reversed but was never given back', r.id)
    WHEN r.id IS NULL THEN b.cause || ' was given back but is not reversed'
    ELSE b.cause || ' was given back with another amount, account or merchant' END
  FROM reversed r FULL JOIN back b ON transaction_of(b.cause) = r.id
  WHERE (r.merchant_id, r.merchant_id, r.amount, r.account, r.account)
    IS DISTINCT FROM (b.merchant_id, b.merchant_id_too, b.amount, b.account, b.account_too)
    -- Or its refunds gave all of it back to the payer.
    AND NOT (b.cause IS NULL AND r.settled <= (
      SELECT coalesce(sum(g.settled_amount), 0) FROM transaction g WHERE g.refund_of_id = r.id));

  -- What the operator said beyond what was asked: booked once, and decided once.
  RETURN QUERY
  WITH money AS (
    SELECT m.cause, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too,
      sum(m.amount) FILTER (WHERE m.step = 'excess') AS kept, sum(m.amount) FILTER (WHERE m.step = 'excess_credit') AS credited,
      sum(m.amount) FILTER (WHERE m.step = 'excess_return') AS returned,
      min(CASE m.step WHEN 'excess' THEN m.debit WHEN 'excess_return' THEN m.credit END) AS account,
      max(CASE m.step WHEN 'excess' THEN m.debit WHEN 'excess_return' THEN m.credit END) AS account_too
    FROM movement m WHERE m.step IN ('excess', 'excess_credit', 'excess_return') AND m.cause = ANY (causes) GROUP BY m.cause
  ), due AS (
    SELECT x.*, 'transaction:' || t.id AS cause, x.said_amount - x.asked_amount AS amount,
      clearing_account(t.payment_method) AS account,
      t.transaction_type = 'pay' AND t.amount = x.asked_amount AND t.settled_amount = x.asked_amount AS agrees
    FROM transaction t JOIN settlement_exception x ON x.merchant_id = t.merchant_id AND x.transaction_id = t.id
    WHERE t.id = ANY (ids)
  )
  SELECT 'collections_credited_once', coalesce(d.merchant_id, m.merchant_id),
    format('%s has an excess of %s that is %s: kept %s, credited %s, returned %s', coalesce(d.cause, m.cause),
      coalesce(d.amount, 0), coalesce(d.state::text, 'unknown'), coalesce(m.kept, 0), coalesce(m.credited, 0),
      coalesce(m.returned, 0))
  FROM due d FULL JOIN money m USING (cause)
  WHERE d.agrees IS NOT TRUE
    OR (m.merchant_id, m.merchant_id_too, m.kept, m.credited, m.returned, m.account, m.account_too) IS DISTINCT FROM
      (d.merchant_id, d.merchant_id, d.amount, CASE d.state WHEN 'credited' THEN d.amount END,
        CASE d.state WHEN 'returned' THEN d.amount END, d.account, d.account);

  -- A chain holds where the hashes of what was told cancel out but for the last one: each event begins where the one
  -- before it ended, none is missing, and none is told twice.
  RETURN QUERY
  WITH lawful AS MATERIALIZED (
    SELECT event_of(m.to_status) AS type, m.from_status AS was, m.to_status AS status
    FROM lifecycle_move m WHERE m.lifecycle = 'transaction'
    UNION ALL SELECT 'payment_pending', '', 'pending'
    -- The operator takes back what refunds had given back already.
    UNION ALL SELECT 'payment_reversed', 'reversed', 'reversed'
  ), told AS (
    SELECT c.transaction_id, min(c.merchant_id) AS merchant_id, max(c.merchant_id) AS merchant_id_too,
      count(*) FILTER (WHERE c.was = '') AS begun,
      bool_and(((c.type, c.was, c.status) IN (SELECT l.type, l.was, l.status FROM lawful l)) IS TRUE) AS lawful,
      sum(hashtext(c.status)::bigint - CASE c.was WHEN '' THEN 0 ELSE hashtext(c.was) END) AS net
    FROM (
      SELECT e.id, e.merchant_id, e.type, transaction_of(event_cause(e.data)) AS transaction_id, e.data->>'status' AS status,
        coalesce(e.data->>'previous_status', '') AS was
      FROM event e WHERE event_cause(e.data) = ANY (causes) AND e.type = ANY (changes)
      OFFSET 0
    ) c GROUP BY c.transaction_id
  )
  SELECT 'events_tell_every_change', coalesce(t.merchant_id, told.merchant_id), CASE
    WHEN t.id IS NULL THEN format('events tell of transaction:%s, which is not there', told.transaction_id)
    ELSE format('its events do not tell how transaction:%s became %s', t.id, t.status) END
  FROM told FULL JOIN (
    SELECT * FROM transaction WHERE transaction_type = 'pay' AND id = ANY (ids)
  ) t ON t.id = told.transaction_id
  WHERE told.transaction_id IS NULL OR told.begun <> 1 OR NOT told.lawful OR told.net <> hashtext(t.status::text)
    OR (told.merchant_id, told.merchant_id_too) IS DISTINCT FROM (t.merchant_id, t.merchant_id);

  RETURN QUERY
  SELECT 'statuses_agree_with_requests', t.merchant_id, format('transaction:%s is %s, and %s', t.id, t.status,
    CASE WHEN r.id IS NULL THEN 'nothing was asked of the operator'
      ELSE format('its request over %s by %s is %s, asked about %s%s', r.amount, r.provider, r.state,
        coalesce(r.next_check_at::text, 'no more'), '; the operator said ' || (r.evidence->>'amount')) END)
  FROM transaction t
    LEFT JOIN settlement_exception x ON x.merchant_id = t.merchant_id AND x.transaction_id = t.id
  LEFT JOIN (SELECT * FROM operator_request WHERE transaction_id = ANY (ids) AND kind = 'collect') r
    ON r.merchant_id = t.merchant_id AND r.transaction_id = t.id
  WHERE t.transaction_type = 'pay' AND t.id = ANY (ids)
    AND (r.amount = t.amount AND r.provider = t.payment_method AND CASE t.status
      -- What is credited and kept is what the operator said.
      WHEN 'success' THEN r.state = 'settled'
        AND coalesce((r.evidence->>'amount')::numeric = coalesce(x.said_amount, t.settled_amount), true)
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
  WHERE r.transaction_id = ANY (ids) AND other.transaction_id = ANY (ids);

  RETURN QUERY
  SELECT 'references_are_unique', t.merchant_id, 
    format('transaction:%s and transaction:%s have the same reference', other.id, t.id)
  FROM transaction t JOIN transaction other
    ON other.reference = t.reference AND other.merchant_id = t.merchant_id AND other.id < t.id
  WHERE t.id = ANY (ids);
END $$;

-- As before, with the steps of an excess.
CREATE OR REPLACE FUNCTION audit_movements(after bigint, upto bigint) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT 'reservations_end_once', ended.merchant_id, ended.cause || ' ended otherwise than it was reserved'
  FROM movement ended LEFT JOIN movement held ON held.cause = ended.cause AND held.step = 'reserve'
    LEFT JOIN movement rest ON rest.cause = ended.cause AND rest.step = 'release' AND ended.step = 'post'
  -- What a batch set aside ends with each of its recipients: `audit_batches`.
  WHERE ended.step IN ('post', 'void') AND ended.id > after AND ended.id <= upto AND ended.cause NOT LIKE 'recipient:%'
    AND ended.cause NOT LIKE 'batch:%' AND (ended.merchant_id, ended.amount + coalesce(rest.amount, 0), ended.debit)
      IS DISTINCT FROM (held.merchant_id, held.amount, held.credit)
  UNION ALL
  SELECT 'reservations_end_once', one.merchant_id, one.cause || ' was paid out and given back'
  FROM movement one JOIN movement other ON other.cause = one.cause
  WHERE one.id > after AND one.id <= upto
    AND (one.step = 'post' AND other.step = 'void' OR one.step = 'void' AND other.step = 'post');

  RETURN QUERY
  SELECT 'movements_have_one_cause', m.merchant_id, format('%s has %s twice', m.cause, m.step)
  FROM movement m JOIN movement other ON other.cause = m.cause AND other.step = m.step AND other.id <> m.id
  WHERE m.id > after AND m.id <= upto
  UNION ALL
  SELECT 'movements_have_one_cause', m.merchant_id, format('%s from %s to %s for %s: nothing of ours moves so', m.step,
    m.debit, m.credit, m.cause)
  FROM movement m LEFT JOIN transaction t ON t.id = transaction_of(m.cause)
  WHERE m.id > after AND m.id <= upto AND NOT (CASE m.step
    WHEN 'fund' THEN m.cause LIKE 'funding:%' AND m.debit = 'funding' AND m.credit = 'available'
    WHEN 'credit' THEN t.merchant_id = m.merchant_id AND m.credit = 'available' AND m.debit::text LIKE 'clearing\_%'
    WHEN 'reverse' THEN CASE WHEN t.transaction_type = 'pay'
      THEN t.merchant_id = m.merchant_id AND m.debit = 'available' AND m.credit::text LIKE 'clearing\_%'
      ELSE (t.merchant_id = m.merchant_id OR m.cause ~ '^(payout|batch|recipient):.')
        AND m.debit::text LIKE 'clearing\_%' AND m.credit = 'available' END
    WHEN 'shortfall' THEN t.merchant_id = m.merchant_id AND m.debit = 'suspense' AND m.credit::text LIKE 'clearing\_%'
    WHEN 'excess' THEN t.merchant_id = m.merchant_id AND m.credit = 'unallocated' AND m.debit::text LIKE 'clearing\_%'
    WHEN 'excess_credit' THEN t.merchant_id = m.merchant_id AND m.debit = 'unallocated' AND m.credit = 'available'
    WHEN 'excess_return' THEN t.merchant_id = m.merchant_id AND m.debit = 'unallocated' AND m.credit::text LIKE 'clearing\_%'
    WHEN 'recover' THEN m.cause LIKE 'receivable:%' AND m.debit = 'available' AND m.credit = 'suspense'
    ELSE (t.merchant_id = m.merchant_id OR m.cause ~ '^(payout|batch|recipient):.') AND CASE m.step
      WHEN 'reserve' THEN m.debit = 'available' AND m.credit = 'reserved'
      WHEN 'post' THEN m.debit = 'reserved' AND m.credit::text LIKE 'clearing\_%'
        AND m.credit = coalesce(clearing_account(t.payment_method), m.credit)
      ELSE m.debit = 'reserved' AND m.credit = 'available' END END IS TRUE)
  UNION ALL
  SELECT 'movements_have_one_cause', m.merchant_id, format('%s for %s, which is no payout of theirs', m.step, m.cause)
  FROM movement m LEFT JOIN payout p ON p.id = payout_of(m.cause)
  WHERE m.id > after AND m.id <= upto AND m.cause LIKE 'payout:%' AND p.merchant_id IS DISTINCT FROM m.merchant_id
  UNION ALL
  SELECT 'movements_have_one_cause', m.merchant_id,
    format('%s for %s, which is none of their batches or recipients', m.step, m.cause)
  FROM movement m LEFT JOIN batch_recipient r ON r.id = recipient_of(m.cause)
    LEFT JOIN batch b ON b.id = coalesce(batch_of(m.cause), r.batch_id)
  WHERE m.id > after AND m.id <= upto AND (m.cause LIKE 'batch:%' OR m.cause LIKE 'recipient:%')
    AND b.merchant_id IS DISTINCT FROM m.merchant_id;

  -- Causes that are not there, with all that speaks of them.
  RETURN QUERY SELECT * FROM audit_subjects(
    ARRAY(
      SELECT DISTINCT transaction_of(m.cause) FROM movement m
      WHERE m.id > after AND m.id <= upto AND NOT EXISTS (SELECT FROM transaction t WHERE t.id = transaction_of(m.cause))
        AND transaction_of(m.cause) IS NOT NULL),
    ARRAY(
      SELECT DISTINCT payout_of(m.cause) FROM movement m
      WHERE m.id > after AND m.id <= upto AND NOT EXISTS (SELECT FROM payout p WHERE p.id = payout_of(m.cause))
        AND payout_of(m.cause) IS NOT NULL),
    ARRAY(
      SELECT DISTINCT batch_of(m.cause) FROM movement m
      WHERE m.id > after AND m.id <= upto AND NOT EXISTS (SELECT FROM batch b WHERE b.id = batch_of(m.cause))
        AND batch_of(m.cause) IS NOT NULL), '{}');
  RETURN QUERY
  SELECT 'batches_end_once', m.merchant_id, format('%s over %s for %s, who is not there', m.step, m.amount, m.cause)
  FROM movement m
  WHERE m.id > after AND m.id <= upto AND recipient_of(m.cause) IS NOT NULL
    AND NOT EXISTS (SELECT FROM batch_recipient r WHERE r.id = recipient_of(m.cause));
END $$;
