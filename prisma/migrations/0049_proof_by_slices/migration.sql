-- AlterTable
ALTER TABLE "audit_point" DROP COLUMN "event_id_before",
ADD COLUMN     "proven_at" TIMESTAMPTZ(3);

-- CreateTable
CREATE TABLE "audit_pass" (
    "id" SERIAL NOT NULL,
    "kind" TEXT NOT NULL,
    "stage" TEXT NOT NULL DEFAULT 'movement',
    "merchant_id_done" INTEGER NOT NULL DEFAULT 0,
    "id_done" BIGINT NOT NULL DEFAULT 0,
    "id_last" BIGINT NOT NULL DEFAULT 0,
    "slices" INTEGER NOT NULL DEFAULT 0,
    "problems" INTEGER NOT NULL DEFAULT 0,
    "begun_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "ended_at" TIMESTAMPTZ(3),

    CONSTRAINT "audit_pass_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "audit_pass_sum" (
    "pass_id" INTEGER NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "available" BIGINT NOT NULL,
    "reserved" BIGINT NOT NULL,
    "receivable" BIGINT NOT NULL,

    CONSTRAINT "audit_pass_sum_pkey" PRIMARY KEY ("pass_id","merchant_id")
);

-- Below: written by hand. The proof of the books by bounded reads: what is new, each minute; all of it, slice by slice.

ALTER TABLE "audit_pass"
  ADD CONSTRAINT "audit_pass_kind" CHECK ("kind" IN ('rolling', 'command')),
  ADD CONSTRAINT "audit_pass_stage" CHECK ("stage" IN
    ('movement', 'event', 'position', 'transaction', 'payout', 'batch', 'payment_link', 'payout_count', 'done'));
CREATE UNIQUE INDEX "audit_pass_rolling" ON "audit_pass" ((true)) WHERE "kind" = 'rolling' AND "ended_at" IS NULL;
GRANT SELECT ON "audit_pass" TO payments_service;
SELECT wall_in('audit_pass_sum');

-- What an event is about, as movements name it (`transaction:12`). Null where it is about no payment.
CREATE FUNCTION event_cause(data jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN data ? 'transaction_id' THEN 'transaction:' || (data->>'transaction_id')
    WHEN data ? 'payout_id' THEN 'payout:' || (data->>'payout_id')
    WHEN data ? 'batch_id' THEN 'batch:' || (data->>'batch_id') END
$$;

-- The proof reads the events of a payment from its first one.
CREATE INDEX "event_cause" ON "event" (event_cause("data"));

-- Proves collections, each from its first row. `ids` may name some that are not there: then what speaks of them is found.
CREATE FUNCTION audit_collections(ids bigint[]) RETURNS TABLE (invariant text, merchant_id int, problem text)
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
    SELECT t.id, t.merchant_id, t.settled_amount AS amount, clearing_account(t.payment_method) AS account
    FROM transaction t
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
    AND NOT (b.cause IS NULL AND r.amount <= (
      SELECT coalesce(sum(g.settled_amount), 0) FROM transaction g WHERE g.refund_of_id = r.id));

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
    CASE WHEN r.id IS NULL THEN 'nothing was asked of the operator' ELSE format('its request over %s by %s is %s, asked about %s',
      r.amount, r.provider, r.state, coalesce(r.next_check_at::text, 'no more')) END)
  FROM transaction t
  LEFT JOIN (SELECT * FROM operator_request WHERE transaction_id = ANY (ids) AND kind = 'collect') r
    ON r.merchant_id = t.merchant_id AND r.transaction_id = t.id
  WHERE t.transaction_type = 'pay' AND t.id = ANY (ids)
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
  WHERE r.transaction_id = ANY (ids) AND other.transaction_id = ANY (ids);

  RETURN QUERY
  SELECT 'references_are_unique', t.merchant_id, 
    format('transaction:%s and transaction:%s have the same reference', other.id, t.id)
  FROM transaction t JOIN transaction other
    ON other.reference = t.reference AND other.merchant_id = t.merchant_id AND other.id < t.id
  WHERE t.id = ANY (ids);
END $$;

-- Proves deposits, refunds and payouts, each from its first row, and what refunds gave back of their collections.
DROP FUNCTION audit_disbursements(boolean);
CREATE FUNCTION audit_disbursements(ids bigint[], payout_ids bigint[])
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
      coalesce(sum(r.amount) FILTER (WHERE r.status = 'processing'), 0) AS open
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
    ('deposit_processing', '', 'processing'), ('deposit_completed', 'processing', 'success'),
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
  SELECT 'references_are_unique', p.merchant_id, format('payout:%s and payout:%s have the same reference', other.id, p.id)
  FROM payout p JOIN payout other
    ON other.reference = p.reference AND other.merchant_id = p.merchant_id AND other.id < p.id
  WHERE p.id = ANY (payout_ids);
END $$;

-- Proves batches and their recipients, each from its first row.
DROP FUNCTION audit_batches(boolean);
CREATE FUNCTION audit_batches(ids int[]) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  recipients bigint[] := ARRAY(SELECT r.id FROM batch_recipient r WHERE r.batch_id = ANY (ids));
  causes text[] := ARRAY(
    SELECT 'batch:' || id FROM unnest(ids) AS id UNION ALL SELECT 'recipient:' || id FROM unnest(recipients) AS id);
BEGIN
  RETURN QUERY
  WITH found AS (
    SELECT r.batch_id, min(r.merchant_id) AS merchant_id, max(r.merchant_id) AS merchant_id_too, count(*) AS n,
      sum(r.amount) AS total,
      count(*) FILTER (WHERE r.status = 'processing') AS processing, count(*) FILTER (WHERE r.status = 'success') AS succeeded,
      count(*) FILTER (WHERE r.status = 'failed') AS failed, count(*) FILTER (WHERE r.status = 'cancelled') AS cancelled,
      coalesce(sum(r.settled_amount), 0) AS paid,
      coalesce(sum(r.settled_amount) FILTER (WHERE r.reversed_at IS NOT NULL), 0) AS returned
    FROM batch_recipient r WHERE r.batch_id = ANY (ids) GROUP BY r.batch_id
  )
  SELECT 'batches_are_counted', b.merchant_id, format('batch:%s counts %s, and its recipients are %s', b.id,
    (b.recipient_count, b.total_amount, b.processing_count, b.succeeded_count, b.failed_count, b.cancelled_count, b.paid_amount,
      b.returned_amount), (f.n, f.total, f.processing, f.succeeded, f.failed, f.cancelled, f.paid, f.returned))
  FROM batch b LEFT JOIN found f ON f.batch_id = b.id
  WHERE b.id = ANY (ids)
    AND ((b.merchant_id, b.merchant_id, b.recipient_count, b.total_amount, b.processing_count, b.succeeded_count, b.failed_count,
        b.cancelled_count, b.paid_amount, b.returned_amount)
      IS DISTINCT FROM (coalesce(f.merchant_id, b.merchant_id), coalesce(f.merchant_id_too, b.merchant_id), coalesce(f.n, 0),
        coalesce(f.total, 0), coalesce(f.processing, 0), coalesce(f.succeeded, 0), coalesce(f.failed, 0),
        coalesce(f.cancelled, 0),        coalesce(f.paid, 0), coalesce(f.returned, 0)));

  -- All of a batch is set aside in one movement, none of a draft; what is cancelled of it is given back in one.
  RETURN QUERY
  WITH moved AS (
    SELECT m.cause, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too,
      sum(m.amount) FILTER (WHERE m.step = 'reserve') AS reserved, sum(m.amount) FILTER (WHERE m.step = 'void') AS voided,
      count(*) FILTER (WHERE m.step NOT IN ('reserve', 'void')) AS others
    FROM movement m WHERE m.cause LIKE 'batch:%' AND m.cause = ANY (causes) GROUP BY m.cause
  ), due AS (
    SELECT 'batch:' || b.id AS cause, b.merchant_id, b.total_amount, b.status, b.started_at IS NOT NULL AS started,
      b.approval <> 'not_required' AS asked,
      (SELECT sum(r.amount) FROM batch_recipient r WHERE r.batch_id = b.id AND r.status = 'cancelled') AS cancelled
    FROM batch b WHERE b.id = ANY (ids)
  )
  SELECT 'batches_end_once', coalesce(d.merchant_id, m.merchant_id),
    format('%s over %s is %s: set aside %s, given back %s, cancelled %s',
    coalesce(d.cause, m.cause), d.total_amount, d.status, m.reserved, m.voided, d.cancelled)
  FROM due d FULL JOIN moved m USING (cause)
  WHERE d.cause IS NULL OR CASE WHEN d.started OR d.asked
    THEN (m.merchant_id, m.merchant_id_too, m.reserved, m.voided, m.others)
      IS DISTINCT FROM (d.merchant_id, d.merchant_id, d.total_amount, d.cancelled, 0)
    ELSE m.cause IS NOT NULL END;

  RETURN QUERY
  WITH money AS (
    SELECT m.cause, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too,
      sum(m.amount) FILTER (WHERE m.step = 'post') AS posted, sum(m.amount) FILTER (WHERE m.step = 'release') AS released,
      sum(m.amount) FILTER (WHERE m.step = 'void') AS voided, sum(m.amount) FILTER (WHERE m.step = 'reverse') AS reversed,
      count(*) FILTER (WHERE m.step NOT IN ('post', 'release', 'void', 'reverse')) AS others,
      min(CASE m.step WHEN 'post' THEN m.credit WHEN 'reverse' THEN m.debit END) AS account,
      max(CASE m.step WHEN 'post' THEN m.credit WHEN 'reverse' THEN m.debit END) AS account_too
    FROM movement m WHERE m.cause LIKE 'recipient:%' AND m.cause = ANY (causes) GROUP BY m.cause
  ), due AS (
    SELECT 'recipient:' || r.id AS cause, r.* FROM batch_recipient r WHERE r.batch_id = ANY (ids)
  )
  SELECT 'batches_end_once', coalesce(d.merchant_id, m.merchant_id),
    format('%s over %s is %s: paid %s, given back %s, returned %s',
    coalesce(d.cause, m.cause), d.amount, d.status, m.posted, coalesce(m.released, 0) + coalesce(m.voided, 0), m.reversed)
  FROM due d FULL JOIN money m USING (cause)
  WHERE d.cause IS NULL OR CASE WHEN d.status IN ('success', 'failed')
    THEN (m.merchant_id, m.merchant_id_too, m.posted, coalesce(m.released, 0), m.voided, m.reversed, m.others)
        IS DISTINCT FROM (d.merchant_id, d.merchant_id, d.settled_amount, coalesce(d.amount - d.settled_amount, 0),
          CASE d.status WHEN 'failed' THEN d.amount END, CASE WHEN d.reversed_at IS NOT NULL THEN d.settled_amount END, 0)
      OR d.status = 'success' AND (m.account, m.account_too)
        IS DISTINCT FROM (clearing_account(d.payment_method), clearing_account(d.payment_method))
    ELSE m.cause IS NOT NULL END;

  RETURN QUERY
  WITH told AS (
    SELECT batch_of(event_cause(e.data)) AS batch_id, min(e.merchant_id) AS merchant_id, max(e.merchant_id) AS merchant_id_too,
      count(*) FILTER (WHERE e.type = 'batch_draft' AND NOT e.data ? 'previous_status') AS made,
      count(*) FILTER (WHERE e.type = 'batch_pending_approval') AS asked,
      count(*) FILTER (WHERE e.type = 'batch_processing') AS started,
      count(*) FILTER (WHERE e.type = 'bulk_pay_done') AS done,
      count(*) FILTER (WHERE e.type = 'batch_cancelled') AS cancelled,
      coalesce(sum((e.data->>'amount')::bigint) FILTER (WHERE e.type = 'recipient_reversed'), 0) AS returned,
      max(e.data::text) FILTER (WHERE e.type IN ('bulk_pay_done', 'batch_cancelled')) AS last
    FROM event e
    WHERE event_cause(e.data) = ANY (causes)
      AND (e.type LIKE 'batch\_%' OR e.type IN ('bulk_pay_done', 'recipient_reversed')) GROUP BY 1
  ), due AS (
    SELECT b.*, 1 AS made_n, (b.approval <> 'not_required')::int AS asked_n, (b.started_at IS NOT NULL)::int AS started_n,
      (b.processed_at IS NOT NULL AND b.started_at IS NOT NULL)::int AS done_n,
      (b.processed_at IS NOT NULL AND b.started_at IS NULL)::int AS cancelled_n
    FROM batch b WHERE b.id = ANY (ids)
  )
  SELECT 'events_tell_every_change', coalesce(b.merchant_id, t.merchant_id), CASE
    WHEN b.id IS NULL THEN format('events tell of batch:%s, which is not there', t.batch_id)
    ELSE format('its events do not tell how batch:%s became %s', b.id, b.status) END
  FROM due b FULL JOIN told t ON t.batch_id = b.id
  WHERE t.batch_id IS NULL OR (t.merchant_id, t.merchant_id_too) IS DISTINCT FROM (b.merchant_id, b.merchant_id)
    OR (t.made, t.asked, t.started, t.done, t.cancelled, t.returned)
      IS DISTINCT FROM (b.made_n, b.asked_n, b.started_n, b.done_n, b.cancelled_n, b.returned_amount)
    OR t.done + t.cancelled = 1 AND (t.last::jsonb->>'status', t.last::jsonb->>'succeeded_count', t.last::jsonb->>'failed_count',
        t.last::jsonb->>'cancelled_count', t.last::jsonb->>'paid_amount')
      IS DISTINCT FROM (b.status::text, b.succeeded_count::text, b.failed_count::text, b.cancelled_count::text,
        b.paid_amount::text)
  UNION ALL
  -- The last movement of each sort was told of when it was made.
  SELECT 'events_tell_every_change', m.merchant_id, format('no event tells what last moved of batch:%s (%s)', m.batch_id, m.what)
  FROM (
    SELECT min(m.merchant_id) AS merchant_id, b.id AS batch_id, w.what, max(m.created_at) AS at
    FROM batch b JOIN (
      SELECT m.*, batch_of(m.cause) AS batch_id FROM movement m WHERE m.cause = ANY (causes) AND m.cause LIKE 'batch:%'
      UNION ALL SELECT m.*, r.batch_id FROM movement m JOIN batch_recipient r ON r.id = recipient_of(m.cause)
      WHERE m.cause = ANY (causes) AND m.cause LIKE 'recipient:%' AND r.id = ANY (recipients)
    ) m ON m.batch_id = b.id
    CROSS JOIN LATERAL (SELECT CASE WHEN m.step = 'reserve' THEN 'begun' WHEN m.step = 'reverse' THEN m.cause
      WHEN b.processed_at = m.created_at THEN 'ended' ELSE 'moved' END AS what) w
    WHERE b.id = ANY (ids) GROUP BY b.id, w.what
  ) m LEFT JOIN (
    SELECT batch_of(event_cause(e.data)) AS batch_id, w.what, max(e.created_at) AS at
    FROM event e CROSS JOIN LATERAL (VALUES
      (CASE WHEN e.type IN ('batch_processing', 'batch_pending_approval') THEN 'begun' END),
      (CASE WHEN e.type IN ('bulk_pay_done', 'batch_cancelled') THEN 'ended' END),
      (CASE WHEN e.type IN ('bulk_pay_done', 'batch_cancelled', 'batch_progress') THEN 'moved' END),
      (CASE WHEN e.type = 'recipient_reversed' THEN 'recipient:' || (e.data->>'recipient_id') END)
    ) AS w (what)
    WHERE event_cause(e.data) = ANY (causes) AND w.what IS NOT NULL GROUP BY 1, 2
  ) t ON t.batch_id = m.batch_id AND t.what = m.what
  WHERE t.at IS NULL OR t.at < m.at;

  RETURN QUERY
  SELECT 'statuses_agree_with_requests', coalesce(d.merchant_id, r.merchant_id), format('recipient:%s is %s, and %s',
    coalesce(d.id, r.recipient_id), d.status,
    CASE WHEN r.id IS NULL THEN 'nothing was asked of the operator' ELSE format('its request over %s by %s is %s, asked about %s',
      r.amount, r.provider, r.state, coalesce(r.next_check_at::text, 'no more')) END)
  FROM (SELECT * FROM batch_recipient d WHERE d.batch_id = ANY (ids)) AS d
  FULL JOIN (
    SELECT r.* FROM operator_request r WHERE r.recipient_id = ANY (recipients)
  ) AS r ON r.recipient_id = d.id
  WHERE CASE WHEN r.id IS NULL THEN d.status NOT IN ('pending', 'cancelled') WHEN d.id IS NULL THEN true ELSE
    (r.merchant_id = d.merchant_id AND r.amount = d.amount AND r.provider = d.payment_method AND r.phone = d.account
      AND r.kind = 'disburse' AND CASE d.status
        WHEN 'success' THEN r.state = 'settled'
        WHEN 'failed' THEN r.state IN ('refused', 'closed')
        -- Not decided: then somebody will ask.
        WHEN 'processing' THEN r.state IN ('sending', 'unsent', 'accepted', 'doubt') AND r.next_check_at IS NOT NULL
        ELSE false END) IS NOT TRUE END;

  -- Of what people approve nothing changes; the bounds of the table see to it that they did.
  RETURN QUERY
  SELECT 'approvals_cover_what_is_paid', b.merchant_id, format('batch:%s is not what was to be approved', b.id)
  FROM batch b
  WHERE b.approval_digest IS NOT NULL AND b.id = ANY (ids) AND b.approval_digest IS DISTINCT FROM batch_digest(b);
END $$;
REVOKE EXECUTE ON FUNCTION audit_batches, batch_of FROM PUBLIC;

-- Proves what payment links count (`ids`), and that each payment by a link (of `transaction_ids`) was told of once.
DROP FUNCTION audit_links(boolean);
CREATE FUNCTION audit_links(ids int[], transaction_ids bigint[]) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  causes text[] := ARRAY(SELECT 'transaction:' || id FROM unnest(transaction_ids) AS id);
BEGIN
  RETURN QUERY
  WITH found AS (
    SELECT t.payment_link_id, min(t.merchant_id) AS merchant_id, max(t.merchant_id) AS merchant_id_too,
      count(*) FILTER (WHERE t.status IN ('success', 'reversed')) AS used,
      count(*) FILTER (WHERE t.status IN ('pending', 'processing')) AS open
    FROM transaction t WHERE t.payment_link_id IS NOT NULL AND t.payment_link_id = ANY (ids)
    GROUP BY t.payment_link_id
  )
  SELECT 'links_are_counted', l.merchant_id, format('payment_link:%s counts %s paid and %s open, and %s and %s are there', l.id,
    l.usage_count, l.open_count, coalesce(f.used, 0), coalesce(f.open, 0))
  FROM payment_link l LEFT JOIN found f ON f.payment_link_id = l.id
  WHERE l.id = ANY (ids) AND (l.merchant_id, l.merchant_id, l.usage_count, l.open_count)
    IS DISTINCT FROM (coalesce(f.merchant_id, l.merchant_id), coalesce(f.merchant_id_too, l.merchant_id), coalesce(f.used, 0),
      coalesce(f.open, 0));

  RETURN QUERY
  WITH told AS (
    SELECT transaction_of(event_cause(e.data)) AS id, count(*) AS times, min(e.merchant_id) AS merchant_id,
      max(e.merchant_id) AS merchant_id_too, min((e.data->>'payment_link_id')::int) AS link,
      min((e.data->>'amount')::bigint) AS amount
    FROM event e WHERE event_cause(e.data) = ANY (causes) AND e.type = 'payment_link_used' GROUP BY 1
  ), paid AS (
    SELECT t.* FROM transaction t
    WHERE t.id = ANY (transaction_ids) AND t.payment_link_id IS NOT NULL AND t.status IN ('success', 'reversed')
  )
  SELECT 'events_tell_every_change', coalesce(p.merchant_id, told.merchant_id),
    format('%s events tell that payment_link:%s was used by transaction:%s', coalesce(told.times, 0),
      coalesce(p.payment_link_id, told.link), coalesce(p.id, told.id))
  FROM paid p FULL JOIN told ON told.id = p.id
  WHERE (told.times, told.merchant_id, told.merchant_id_too, told.link, told.amount)
    IS DISTINCT FROM (1, p.merchant_id, p.merchant_id, p.payment_link_id, p.settled_amount);
END $$;

-- Proves payments and what they are counted in, each from its first row, by bounded reads. Of what is not there (an id that
-- a movement or an event names) it finds what speaks of it.
CREATE FUNCTION audit_subjects(transaction_ids bigint[], payout_ids bigint[], batch_ids int[], link_ids int[])
RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF transaction_ids <> '{}' THEN RETURN QUERY SELECT * FROM audit_collections(transaction_ids); END IF;
  IF transaction_ids <> '{}' OR payout_ids <> '{}' THEN
    RETURN QUERY SELECT * FROM audit_disbursements(transaction_ids, payout_ids);
  END IF;
  IF batch_ids <> '{}' THEN RETURN QUERY SELECT * FROM audit_batches(batch_ids); END IF;
  IF transaction_ids <> '{}' OR link_ids <> '{}' THEN
    RETURN QUERY SELECT * FROM audit_links(link_ids, transaction_ids);
  END IF;
END $$;

-- Proves the movements with ids beyond `after`, up to `upto`: each has one cause, which is there, and moves money as its step
-- does. What they come to is proven with their causes (`audit_subjects`) and with the balances (`audit_balances`).
CREATE FUNCTION audit_movements(after bigint, upto bigint) RETURNS TABLE (invariant text, merchant_id int, problem text)
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

-- Proves the events with ids beyond `after`, up to `upto`: what they are about is there. What they tell is proven with it.
CREATE FUNCTION audit_events(after bigint, upto bigint) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  changes text[] := ARRAY(
    SELECT event_of('pending') UNION SELECT event_of(m.to_status) FROM lifecycle_move m WHERE m.lifecycle = 'transaction');
BEGIN
  RETURN QUERY
  SELECT 'events_tell_every_change', e.merchant_id, format('event:%s (%s) does not tell what it is about', e.id, e.type)
  FROM event e CROSS JOIN LATERAL (SELECT event_cause(e.data) AS cause OFFSET 0) c
  WHERE e.id > after AND e.id <= upto
    AND (e.type = ANY (changes) OR e.type LIKE 'deposit\_%' OR e.type LIKE 'payout\_%' OR e.type LIKE 'batch\_%'
      OR e.type IN ('bulk_pay_done', 'recipient_reversed', 'payment_link_used'))
    AND coalesce(transaction_of(c.cause), payout_of(c.cause), batch_of(c.cause)) IS NULL;

  RETURN QUERY SELECT s.* FROM (
    SELECT array_agg(DISTINCT transaction_of(c.cause)) AS transactions, array_agg(DISTINCT payout_of(c.cause)) AS payouts,
      array_agg(DISTINCT batch_of(c.cause)) AS batches
    FROM (SELECT event_cause(e.data) AS cause FROM event e WHERE e.id > after AND e.id <= upto OFFSET 0) c
    WHERE NOT EXISTS (SELECT FROM transaction t WHERE t.id = transaction_of(c.cause))
      AND NOT EXISTS (SELECT FROM payout p WHERE p.id = payout_of(c.cause))
      AND NOT EXISTS (SELECT FROM batch b WHERE b.id = batch_of(c.cause))
  ) missing CROSS JOIN LATERAL audit_subjects(
    coalesce(array_remove(missing.transactions, NULL), '{}'), coalesce(array_remove(missing.payouts, NULL), '{}'),
    coalesce(array_remove(missing.batches, NULL), '{}'), '{}') s;
END $$;

-- Proves every balance, and the numbering of every merchant's events: what was kept at the auditor's point, and what was
-- written after it. `anew`: from the first row, nothing that was kept is believed.
CREATE FUNCTION audit_balances(anew boolean) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = on AS $$
#variable_conflict use_column
DECLARE
  since_movement bigint := coalesce((SELECT p.movement_id FROM audit_point p WHERE NOT anew), 0);
BEGIN
  RETURN QUERY
  WITH moved AS (
    SELECT m.merchant_id,
      sum(CASE 'available'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount ELSE 0 END) AS available,
      sum(CASE 'reserved'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount ELSE 0 END) AS reserved,
      sum(CASE 'suspense'::ledger_account WHEN m.debit THEN m.amount WHEN m.credit THEN -m.amount ELSE 0 END) AS receivable
    FROM movement m WHERE m.id > since_movement GROUP BY m.merchant_id
  ), rebuilt AS (
    SELECT merchant_id, coalesce(p.available, 0) + coalesce(m.available, 0) AS available,
      coalesce(p.reserved, 0) + coalesce(m.reserved, 0) AS reserved,
      coalesce(p.receivable, 0) + coalesce(m.receivable, 0) AS receivable
    FROM (SELECT * FROM audit_proven WHERE NOT anew) p FULL JOIN moved m USING (merchant_id)
  )
  SELECT 'balances_equal_movements', merchant_id, CASE WHEN b.available IS NULL THEN 'has movements but no balance'
    ELSE format('balance says available %s, reserved %s%s; its movements say %s, %s%s', b.available, b.reserved,
      ', receivable ' || nullif(b.receivable, 0), coalesce(r.available, 0), coalesce(r.reserved, 0),
      ', ' || nullif(r.receivable, 0)) END
  FROM merchant_balance b FULL JOIN rebuilt r USING (merchant_id)
  WHERE (b.available, b.reserved, b.receivable)
    IS DISTINCT FROM (coalesce(r.available, 0), coalesce(r.reserved, 0), coalesce(r.receivable, 0));

  RETURN QUERY
  SELECT 'no_balance_below_zero', b.merchant_id,
    format('available %s, reserved %s, receivable %s', b.available, b.reserved, b.receivable)
  FROM merchant_balance b WHERE b.available < 0 OR b.reserved < 0 OR b.receivable < 0;

  -- Of a merchant that owes nothing is available.
  RETURN QUERY
  SELECT 'debts_are_paid_first', b.merchant_id, format('available %s, and %s are owed', b.available, b.receivable)
  FROM merchant_balance b WHERE b.receivable > 0 AND b.available > 0;

  RETURN QUERY
  SELECT 'events_tell_every_change', h.merchant_id, format('positions end at %s, with %s of %s events after %s',
    h.position, found.count, h.position - found.since, found.since)
  FROM stream_head h
  LEFT JOIN (SELECT * FROM audit_proven WHERE NOT anew) p USING (merchant_id)
  CROSS JOIN LATERAL (
    SELECT coalesce(p.position, 0) AS since, count(*) AS count, coalesce(max(e.position), 0) AS last
    FROM event e WHERE e.merchant_id = h.merchant_id AND e.position > coalesce(p.position, 0)
  ) found
  WHERE (anew OR h.position <> coalesce(p.position, 0))
    AND (found.count <> h.position - found.since OR found.last <> h.position);
END $$;

-- How far the next proof of what is new reaches: to the end (nulls), or, where more than `most` rows wait, that far. A row
-- that is written late, below an id that was seen, is never stepped over: steps end where every writer is known to have
-- ended (`note_proof`); until then they are empty.
CREATE FUNCTION audit_reach(most bigint, OUT movement_id bigint, OUT event_id bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  point audit_point := (SELECT p FROM audit_point p);
BEGIN
  IF point.singleton AND greatest(
      coalesce(pg_sequence_last_value('movement_id_seq'), 0) - point.movement_id,
      coalesce(pg_sequence_last_value('event_id_seq'), 0) - point.event_id) > most THEN
    movement_id := CASE WHEN point.next_writers = '{}' THEN least(point.next_movement_id, point.movement_id + most)
      ELSE point.movement_id END;
    event_id := CASE WHEN point.next_writers = '{}' THEN least(point.next_event_id, point.event_id + most)
      ELSE point.event_id END;
  END IF;
END $$;

-- Proves what was written after the auditor's point, up to these ids (null: to the end, with every balance): its rows, and
-- whatever they are about from its first row.
CREATE FUNCTION audit_recent(upto_movement bigint, upto_event bigint)
RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  forever CONSTANT bigint := 9223372036854775807;
  -- A link that took more payments than this is counted by the rolling pass, not each minute.
  link_uses_max CONSTANT int := 50000;
  since audit_point := (SELECT p FROM audit_point p);
  causes text[] := ARRAY(
    SELECT event_cause(e.data) FROM event e WHERE e.id > coalesce(since.event_id, 0) AND e.id <= coalesce(upto_event, forever)
    UNION SELECT m.cause FROM movement m
    WHERE m.id > coalesce(since.movement_id, 0) AND m.id <= coalesce(upto_movement, forever));
  transactions bigint[] := ARRAY(
    SELECT transaction_of(c) FROM unnest(causes) AS c WHERE c LIKE 'transaction:%' AND transaction_of(c) IS NOT NULL);
BEGIN
  -- With a refund what it gives back.
  transactions := transactions || ARRAY(
    SELECT DISTINCT t.refund_of_id FROM transaction t WHERE t.id = ANY (transactions) AND t.refund_of_id IS NOT NULL);
  RETURN QUERY SELECT * FROM audit_movements(coalesce(since.movement_id, 0), coalesce(upto_movement, forever));
  RETURN QUERY SELECT * FROM audit_events(coalesce(since.event_id, 0), coalesce(upto_event, forever));
  RETURN QUERY SELECT * FROM audit_subjects(
    transactions,
    ARRAY(SELECT payout_of(c) FROM unnest(causes) AS c WHERE c LIKE 'payout:%' AND payout_of(c) IS NOT NULL),
    ARRAY(
      SELECT batch_of(c) FROM unnest(causes) AS c WHERE c LIKE 'batch:%' AND batch_of(c) IS NOT NULL
      UNION SELECT r.batch_id FROM batch_recipient r
      WHERE r.id = ANY (ARRAY(SELECT recipient_of(c) FROM unnest(causes) AS c WHERE c LIKE 'recipient:%'))),
    ARRAY(
      SELECT l.id FROM payment_link l WHERE l.usage_count <= link_uses_max AND (
        l.id IN (SELECT t.payment_link_id FROM transaction t WHERE t.id = ANY (transactions))
        OR l.id = ANY (ARRAY(
          SELECT (e.data->>'payment_link_id')::int FROM event e
          WHERE e.type = 'payment_link_used' AND e.id > coalesce(since.event_id, 0)
            AND e.id <= coalesce(upto_event, forever))))));
  IF upto_movement IS NULL THEN RETURN QUERY SELECT * FROM audit_balances(false); END IF;
END $$;

-- Notes that what was written up to here (null: to the end) was just proven, in the transaction and snapshot that proved it.
-- To the end, the point moves on to where the end was once an earlier note knew that whoever wrote before that has ended:
-- then this snapshot has seen all of it, and nothing appears before it any more, however long a writer or a proof takes.
CREATE FUNCTION note_proof(upto_movement bigint, upto_event bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  point audit_point;
  is_first boolean;
  is_end boolean := upto_movement IS NULL;
  end_movement bigint := coalesce(pg_sequence_last_value('movement_id_seq'), 0);
  end_event bigint := coalesce(pg_sequence_last_value('event_id_seq'), 0);
  -- Asked after the ends: who holds an id below them is among these, or has ended.
  writers text[] := audit_writers();
  summed_to bigint;
BEGIN
  INSERT INTO audit_point (next_movement_id, next_event_id, next_writers) VALUES (end_movement, end_event, writers)
  ON CONFLICT DO NOTHING;
  is_first := FOUND;
  SELECT * INTO point FROM audit_point FOR UPDATE;
  summed_to := point.movement_id;
  IF NOT is_first AND point.next_writers <> '{}' THEN
    UPDATE audit_point SET next_writers = ARRAY(SELECT unnest(next_writers) INTERSECT SELECT unnest(writers));
  ELSIF NOT is_first AND (is_end OR upto_movement = point.next_movement_id AND upto_event = point.next_event_id) THEN
    UPDATE audit_point
    SET movement_id = next_movement_id, event_id = next_event_id,
      next_movement_id = end_movement, next_event_id = end_event, next_writers = writers
    RETURNING * INTO point;
  ELSIF NOT is_first THEN
    UPDATE audit_point SET movement_id = upto_movement, event_id = upto_event RETURNING * INTO point;
  END IF;
  IF is_end THEN UPDATE audit_point SET proven_at = now(); END IF;
  INSERT INTO audit_proven AS p (merchant_id, available, reserved, receivable, position)
  SELECT merchant_id, coalesce(m.available, 0), coalesce(m.reserved, 0), coalesce(m.receivable, 0), coalesce(h.position, 0)
  FROM (
    SELECT merchant_id,
      sum(CASE 'available'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount ELSE 0 END) AS available,
      sum(CASE 'reserved'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount ELSE 0 END) AS reserved,
      sum(CASE 'suspense'::ledger_account WHEN debit THEN amount WHEN credit THEN -amount ELSE 0 END) AS receivable
    FROM movement WHERE id > summed_to AND id <= point.movement_id GROUP BY merchant_id
  ) m FULL JOIN (
    SELECT s.* FROM stream_head s LEFT JOIN audit_proven a USING (merchant_id)
    WHERE is_end AND s.position IS DISTINCT FROM a.position
  ) h USING (merchant_id)
  ON CONFLICT (merchant_id) DO UPDATE
  SET available = p.available + excluded.available, reserved = p.reserved + excluded.reserved,
    receivable = p.receivable + excluded.receivable,
    position = greatest(p.position, excluded.position);
END $$;

-- For processes of the release before, which note a proof so.
CREATE OR REPLACE FUNCTION note_audit(whole boolean) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$ SELECT note_proof(NULL, NULL) $$;

-- Counts the payouts of the merchants beyond `after`, up to `upto`.
CREATE FUNCTION audit_payout_counts(after int, upto int) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT 'payouts_are_counted', merchant_id, format('%s %s payouts by %s are there, and %s counted', coalesce(there.n, 0), status,
    payment_method, coalesce(k.n, 0))
  FROM (SELECT k.* FROM payout_count k WHERE k.n <> 0 AND k.merchant_id > after AND k.merchant_id <= upto) AS k
  FULL JOIN (
    SELECT p.merchant_id, p.payment_method, p.status, count(*) AS n FROM payout p
    WHERE p.merchant_id > after AND p.merchant_id <= upto GROUP BY 1, 2, 3
  ) AS there USING (merchant_id, payment_method, status)
  WHERE k.n IS DISTINCT FROM there.n;
END $$;

-- Proves a slice of a table: the rows with ids beyond `after`, up to `upto`.
CREATE FUNCTION audit_slice(stage text, after bigint, upto bigint) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
  CASE stage
    WHEN 'movement' THEN RETURN QUERY SELECT * FROM audit_movements(after, upto);
    WHEN 'event' THEN RETURN QUERY SELECT * FROM audit_events(after, upto);
    WHEN 'transaction' THEN RETURN QUERY SELECT * FROM audit_subjects(
      ARRAY(SELECT t.id FROM transaction t WHERE t.id > after AND t.id <= upto), '{}', '{}', '{}');
    WHEN 'payout' THEN RETURN QUERY SELECT * FROM audit_subjects(
      '{}', ARRAY(SELECT p.id FROM payout p WHERE p.id > after AND p.id <= upto), '{}', '{}');
    WHEN 'batch' THEN RETURN QUERY SELECT * FROM audit_subjects(
      '{}', '{}', ARRAY(SELECT b.id FROM batch b WHERE b.id > after AND b.id <= upto), '{}');
    WHEN 'payment_link' THEN RETURN QUERY SELECT * FROM audit_subjects(
      '{}', '{}', '{}', ARRAY(SELECT l.id FROM payment_link l WHERE l.id > after AND l.id <= upto));
    WHEN 'payout_count' THEN RETURN QUERY SELECT * FROM audit_payout_counts(after::int, upto::int);
  END CASE;
END $$;

-- Proves the numbers of events from one place (a merchant's position) on, `most` of them, by the index alone. `reached` is
-- the last place, null at the end; with it come the problems.
CREATE FUNCTION audit_positions(
  from_merchant int, from_position bigint, most int,
  OUT to_merchant int, OUT to_position bigint, OUT merchants int[], OUT problems text[]
) LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  read int;
BEGIN
  SELECT count(*), (array_agg(p.merchant_id ORDER BY p.merchant_id DESC, p.position DESC))[1],
    (array_agg(p.position ORDER BY p.merchant_id DESC, p.position DESC))[1]
  INTO read, to_merchant, to_position FROM (
    SELECT e.merchant_id, e.position FROM event e
    WHERE (e.merchant_id, e.position) > (from_merchant, from_position) AND e.position IS NOT NULL
    ORDER BY e.merchant_id, e.position LIMIT most) p;
  IF read < most THEN to_merchant := NULL; END IF;
  SELECT coalesce(array_agg(f.merchant_id), '{}'), coalesce(array_agg(f.problem), '{}') INTO merchants, problems FROM (
    SELECT p.merchant_id, format('position %s does not follow %s', p.position, p.before) AS problem FROM (
      SELECT p.merchant_id, p.position, lag(p.position, 1, CASE WHEN p.merchant_id = from_merchant THEN from_position ELSE 0 END)
        OVER (PARTITION BY p.merchant_id ORDER BY p.position) AS before
      FROM (
        SELECT e.merchant_id, e.position FROM event e
        WHERE (e.merchant_id, e.position) > (from_merchant, from_position) AND e.position IS NOT NULL
    ORDER BY e.merchant_id, e.position LIMIT most) p
    ) p WHERE p.position <> p.before + 1
    UNION ALL
    SELECT h.merchant_id, format('positions end at %s, and the last event has %s', h.position, coalesce(last.position, 0))
    FROM stream_head h LEFT JOIN LATERAL (
      SELECT max(e.position) AS position FROM event e WHERE e.merchant_id = h.merchant_id
    ) last ON true
    WHERE h.merchant_id >= from_merchant AND (to_merchant IS NULL OR h.merchant_id < to_merchant)
      AND h.position IS DISTINCT FROM coalesce(last.position, 0)
  ) f;
END $$;

-- Begins a proof of all the books, slice by slice. Of the rolling ones there is one at a time: the one that is under way.
CREATE FUNCTION begin_audit_pass(of_kind text) RETURNS int LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  -- Of a command that was killed nobody asks any more.
  DELETE FROM audit_pass_sum s USING audit_pass p
  WHERE p.id = s.pass_id AND p.kind = 'command' AND p.begun_at < now() - interval '7 days';
  DELETE FROM audit_pass p WHERE p.begun_at < now() - interval '30 days' AND (p.kind = 'command' OR p.ended_at IS NOT NULL);
  INSERT INTO audit_pass (kind) VALUES (of_kind)
  ON CONFLICT ((true)) WHERE "kind" = 'rolling' AND "ended_at" IS NULL DO UPDATE SET kind = excluded.kind RETURNING id
$$;

-- Proves the next slice of a pass, `most` rows of one table, and notes how far it came: in one snapshot, for a moment. Rows
-- after the auditor's point are proven there. Movements and events up to it never change: what movements come to is summed
-- slice by slice, and must be what was kept when each was proven first.
CREATE FUNCTION prove_slice(pass int, most int) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  stages CONSTANT text[] := '{movement,event,position,transaction,payout,batch,payment_link,payout_count,done}';
  here audit_pass;
  point audit_point := (SELECT p FROM audit_point p);
  upto bigint;
  places record;
  found int := 0;
BEGIN
  SELECT * INTO here FROM audit_pass p WHERE p.id = pass FOR UPDATE;
  IF here.stage = 'done' OR here.id IS NULL THEN RETURN; END IF;
  IF here.id_done = 0 AND here.merchant_id_done = 0 THEN
    -- What comes later is proven when it comes.
    here.id_last := CASE here.stage WHEN 'event' THEN point.event_id WHEN 'transaction' THEN (SELECT max(id) FROM transaction)
      WHEN 'payout' THEN (SELECT max(id) FROM payout) WHEN 'batch' THEN (SELECT max(id) FROM batch)
      WHEN 'payment_link' THEN (SELECT max(id) FROM payment_link) WHEN 'payout_count' THEN 2147483647 END;
  END IF;
  IF here.stage = 'movement' THEN here.id_last := coalesce(point.movement_id, 0); END IF;

  IF here.stage = 'position' THEN
    SELECT * INTO places FROM audit_positions(here.merchant_id_done, here.id_done, most);
    RETURN QUERY SELECT 'events_tell_every_change', f.merchant_id, f.problem
      FROM unnest(places.merchants, places.problems) AS f (merchant_id, problem);
    GET DIAGNOSTICS found = ROW_COUNT;
    here.merchant_id_done := places.to_merchant;
    here.id_done := places.to_position;
    upto := places.to_merchant;
  ELSIF here.id_done < here.id_last THEN
    IF here.stage = 'batch' THEN
      SELECT max(b.id) INTO upto FROM (
        SELECT b.id, sum(b.recipient_count) OVER (ORDER BY b.id) - b.recipient_count AS before FROM (
          SELECT * FROM batch b WHERE b.id > here.id_done ORDER BY b.id LIMIT greatest(most / 100, 1)) b
      ) b WHERE b.before < most;
    ELSIF here.stage = 'payment_link' THEN
      SELECT max(l.id) INTO upto FROM (
        SELECT l.id, sum(l.usage_count) OVER (ORDER BY l.id) - l.usage_count AS before FROM (
          SELECT * FROM payment_link l WHERE l.id > here.id_done ORDER BY l.id LIMIT greatest(most / 10, 1)) l
      ) l WHERE l.before < most;
    ELSIF here.stage = 'payout_count' THEN
      SELECT max(k.merchant_id) INTO upto FROM (
        SELECT k.merchant_id, sum(k.n) OVER (ORDER BY k.merchant_id) - k.n AS before FROM (
          SELECT k.merchant_id, sum(k.n) AS n FROM payout_count k WHERE k.merchant_id > here.id_done
          GROUP BY 1 ORDER BY 1 LIMIT most) k
      ) k WHERE k.before < most;
    ELSE
      EXECUTE format('SELECT max(id) FROM (SELECT id FROM %I WHERE id > $1 ORDER BY id LIMIT $2) s', here.stage)
      INTO upto USING here.id_done, most;
    END IF;
    upto := least(coalesce(upto, here.id_last), here.id_last);
    RETURN QUERY SELECT * FROM audit_slice(here.stage, here.id_done, upto);
    GET DIAGNOSTICS found = ROW_COUNT;
    IF here.stage = 'movement' THEN
      INSERT INTO audit_pass_sum AS s (pass_id, merchant_id, available, reserved, receivable)
      SELECT here.id, m.merchant_id,
        sum(CASE 'available'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount ELSE 0 END),
        sum(CASE 'reserved'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount ELSE 0 END),
        sum(CASE 'suspense'::ledger_account WHEN m.debit THEN m.amount WHEN m.credit THEN -m.amount ELSE 0 END)
      FROM movement m WHERE m.id > here.id_done AND m.id <= upto GROUP BY m.merchant_id
      ON CONFLICT (pass_id, merchant_id) DO UPDATE SET available = s.available + excluded.available,
        reserved = s.reserved + excluded.reserved, receivable = s.receivable + excluded.receivable;
    END IF;
    here.id_done := upto;
    IF upto = here.id_last THEN upto := NULL; END IF;
  END IF;
  here.problems := here.problems + found;

  IF here.stage = 'movement' AND upto IS NULL THEN
    RETURN QUERY
    SELECT 'balances_equal_movements', merchant_id,
      format('its movements up to %s say %s, %s, %s, and said %s, %s, %s when they were proven', here.id_last,
      coalesce(s.available, 0), coalesce(s.reserved, 0), coalesce(s.receivable, 0),
      coalesce(p.available, 0), coalesce(p.reserved, 0), coalesce(p.receivable, 0))
    FROM (SELECT * FROM audit_pass_sum WHERE pass_id = here.id) s FULL JOIN audit_proven p USING (merchant_id)
    WHERE (coalesce(s.available, 0), coalesce(s.reserved, 0), coalesce(s.receivable, 0))
      <> (coalesce(p.available, 0), coalesce(p.reserved, 0), coalesce(p.receivable, 0));
    GET DIAGNOSTICS found = ROW_COUNT;
    here.problems := here.problems + found;
    DELETE FROM audit_pass_sum s WHERE s.pass_id = here.id;
  END IF;
  IF upto IS NULL THEN
    here.stage := stages[array_position(stages, here.stage) + 1];
    here.id_done := 0;
    here.merchant_id_done := 0;
  END IF;
  UPDATE audit_pass p SET stage = here.stage, id_done = here.id_done, merchant_id_done = here.merchant_id_done,
    id_last = coalesce(here.id_last, 0), slices = p.slices + 1, problems = here.problems,
    ended_at = CASE WHEN here.stage = 'done' THEN now() END
  WHERE p.id = here.id;
  IF here.stage = 'done' AND here.problems = 0 THEN UPDATE audit_point SET whole_proven_at = here.begun_at; END IF;
END $$;

-- Holds the books against every invariant in one snapshot, and writes nothing: what was written after the auditor's point,
-- or all of it. All of it is for books of a test's size; those of a service are proven by `prove_slice`.
CREATE OR REPLACE FUNCTION audit_ledger(whole boolean) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  slice CONSTANT int := 20000;
  stage text;
  last bigint;
  after bigint;
BEGIN
  IF NOT whole THEN
    RETURN QUERY SELECT DISTINCT * FROM audit_recent(NULL, NULL);
    RETURN;
  END IF;
  RETURN QUERY SELECT * FROM audit_balances(true);
  FOREACH stage IN ARRAY '{movement,event,transaction,payout,batch,payment_link}'::text[] LOOP
    EXECUTE format('SELECT coalesce(max(id), 0) FROM %I', stage) INTO last;
    FOR after IN SELECT generate_series(0, last - 1, slice) LOOP
      RETURN QUERY SELECT DISTINCT * FROM audit_slice(stage, after, after + slice);
    END LOOP;
  END LOOP;
  RETURN QUERY SELECT * FROM audit_payout_counts(0, 2147483647);
END $$;

DROP FUNCTION audit_books(boolean);
REVOKE EXECUTE ON FUNCTION event_cause, audit_collections, audit_disbursements, audit_batches, audit_links, audit_subjects,
  audit_movements, audit_events, audit_balances, audit_reach, audit_recent, note_proof, audit_payout_counts, audit_slice,
  audit_positions, begin_audit_pass, prove_slice FROM PUBLIC;
GRANT EXECUTE ON FUNCTION event_cause TO payments_service, payments_merchant;
GRANT EXECUTE ON FUNCTION audit_reach, audit_recent, note_proof, begin_audit_pass, prove_slice TO payments_service;
