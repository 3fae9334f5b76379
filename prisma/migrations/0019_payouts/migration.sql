-- Payouts: made, begun, ended; what is cancelled or was not approved in time; and disbursements that come back.

-- The payout that a movement is about; null where it is about something else.
CREATE FUNCTION payout_of(cause text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN cause LIKE 'payout:_%' AND length(cause) <= 25 AND translate(substr(cause, 8), '0123456789', '') = ''
    THEN substr(cause, 8)::bigint END
$$;

-- What a person approves: SHA-256 of who pays whom, how much, how, when and as what. The reference, which may hold any
-- character, comes last.
CREATE FUNCTION payout_digest(merchant int, method provider, phone text, amount bigint, reference text, scheduled timestamptz)
RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT sha256(convert_to(format('payout:v1|%s|%s|%s|%s|%s|%s', merchant, method, phone, amount,
    floor(extract(epoch FROM scheduled) * 1000), reference), 'UTF8'))
$$;

-- What the log keeps of a payout at the moment of an event.
CREATE FUNCTION payout_told(payout, was payout_status) RETURNS jsonb LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'payout_id', $1.id, 'reference', $1.reference, 'amount', coalesce($1.settled_amount, $1.amount), 'currency', 'XOF',
    'payment_method', $1.payment_method, 'destination_phone', $1.destination_phone, 'status', $1.status,
    'previous_status', was, 'approval', $1.approval, 'scheduled_at', $1.scheduled_at, 'failure_reason', $1.failure_reason,
    'beneficiary_id', $1.beneficiary_id))
$$;

-- Creates payouts: one that goes at once with its money set aside, one for a day to come without; it reserves when due.
-- Who asks is judged first, then the reference, then the halt, then the money, in order of arrival.
-- `outcome` is `made`, `unauthenticated`, `duplicate`, `halted` or `short`; only `made` has an id, only it wrote.
CREATE FUNCTION create_payouts(
  merchant_ids int[], api_key_ids int[], api_key_versions int[], providers provider[], phones text[], amounts bigint[],
  refs text[], requests jsonb[], scheduled_ats timestamptz[], beneficiary_ids int[], beneficiary_names text[], makers text[],
  approval_ms bigint
) RETURNS TABLE (place int, outcome text, payout_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  -- As the columns keep it: what goes at once is due at once.
  at timestamptz := date_trunc('milliseconds', service_now());
BEGIN
  PERFORM pg_advisory_xact_lock_shared(72707373, id)
  FROM (SELECT DISTINCT id FROM unnest(merchant_ids) AS id ORDER BY id) AS merchant;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchant_ids) ORDER BY b.merchant_id FOR UPDATE;
  RETURN QUERY
  WITH RECURSIVE halt AS MATERIALIZED (
    -- Read after the locks and in the statement that moves: whoever waited meets a halt that came meanwhile.
    SELECT EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) AS on
  ), item AS MATERIALIZED (
    SELECT i.*, i.scheduled::timestamptz(3) AS scheduled_at, known.ask IS NOT NULL AS allowed, known.ask,
      old.found IS NOT NULL AS old
    FROM unnest(merchant_ids, api_key_ids, api_key_versions, providers, phones, amounts, refs, requests, scheduled_ats,
      beneficiary_ids, beneficiary_names, makers)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, provider, phone, amount, reference, request, scheduled,
        beneficiary_id, beneficiary_name, maker, place)
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
      approval_digest, approval_expires_at, maker, beneficiary_id, beneficiary_name, request_data, created_at)
    SELECT id, merchant_id, provider, phone, amount, reference, scheduled_at, coalesce(scheduled_at, at),
      CASE WHEN ask THEN 'pending' ELSE 'not_required' END::approval_status,
      CASE WHEN ask THEN payout_digest(merchant_id, provider, phone, amount, reference, scheduled_at) END,
      CASE WHEN ask THEN at + approval_ms * interval '1 millisecond' END,
      maker, beneficiary_id, beneficiary_name, request, at
    FROM chosen ORDER BY merchant_id, id
    RETURNING payout.*, payout AS self
  ), reserved AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT m.merchant_id, 'payout:' || m.id, 'reserve', 'available', 'reserved', m.amount, at
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

-- Begins payouts of an operator that are due, the oldest first, each merchant in its turn: the right to send is taken, and
-- the intent on record, before anything is sent. What was scheduled reserves its money now; what is not covered fails.
-- Nothing begins while payments out are halted, or for a merchant that is no longer active.
-- `outcome` is `begun` or `short`; only `begun` has a request.
CREATE FUNCTION begin_payouts(operator provider, take int, fence_ms bigint, first_check_ms bigint)
RETURNS TABLE (
  outcome text, payout_id bigint, request_id bigint, correlation_id uuid, merchant_id int, amount bigint, phone text,
  request jsonb, created_at timestamptz
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  chosen bigint[];
  merchants int[];
BEGIN
  IF EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) THEN RETURN; END IF;
  SELECT array_agg(c.id), array_agg(DISTINCT c.merchant_id) INTO chosen, merchants
  FROM (
    SELECT turn.id, turn.merchant_id
    FROM (
      SELECT due.*, row_number() OVER (PARTITION BY due.merchant_id ORDER BY due.send_at, due.id) AS nth
      FROM (
        SELECT p.id, p.merchant_id, p.send_at
        FROM payout p JOIN LATERAL (
          SELECT FROM merchant m WHERE m.id = p.merchant_id AND m.status = 'active' LIMIT 1) AS active ON true
        WHERE p.payment_method = operator AND p.status = 'pending' AND p.approval IN ('not_required', 'approved')
          AND p.send_at <= at
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
  RETURN QUERY
  WITH RECURSIVE halt AS MATERIALIZED (
    -- Read after the locks and in the statement that moves: whoever waited meets a halt that came meanwhile.
    SELECT EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) AS on
  ), item AS MATERIALIZED (
    SELECT p.id, p.merchant_id, p.amount, p.send_at, p.scheduled_at IS NOT NULL AS asks
    FROM halt, payout p JOIN LATERAL (
      SELECT FROM merchant m WHERE m.id = p.merchant_id AND m.status = 'active' LIMIT 1) AS active ON true
    WHERE p.id = ANY (chosen) AND NOT halt.on
  ), queue AS MATERIALIZED (
    SELECT i.*, row_number() OVER (PARTITION BY i.merchant_id ORDER BY i.send_at, i.id) AS nth FROM item i WHERE i.asks
  ), walk AS (
    -- One step per item of a merchant: what is covered leaves less for the next.
    SELECT b.merchant_id, 0::bigint AS nth, b.available AS rest, NULL::bigint AS id, false AS covered
    FROM merchant_balance b WHERE b.merchant_id = ANY (merchants)
    UNION ALL
    SELECT w.merchant_id, q.nth, CASE WHEN q.amount > w.rest THEN w.rest ELSE w.rest - q.amount END, q.id, q.amount <= w.rest
    FROM walk w JOIN queue q ON q.merchant_id = w.merchant_id AND q.nth = w.nth + 1
  ), judged AS MATERIALIZED (
    SELECT i.id, NOT i.asks OR w.covered AS covered FROM item i LEFT JOIN walk w ON w.id = i.id
  ), changed AS (
    UPDATE payout p
    SET status = CASE WHEN j.covered THEN 'processing' ELSE 'failed' END::payout_status,
      failure_reason = CASE WHEN NOT j.covered THEN 'INSUFFICIENT_BALANCE' END,
      evidence_source = CASE WHEN NOT j.covered THEN 'service' END,
      settled_at = CASE WHEN NOT j.covered THEN at END
    FROM judged j WHERE p.id = ANY (chosen) AND p.id = j.id AND p.status = 'pending'
    RETURNING p.*, p AS self
  ), reserved AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'payout:' || c.id, 'reserve', 'available', 'reserved', c.amount, at
    FROM changed c WHERE c.status = 'processing' AND c.scheduled_at IS NOT NULL ORDER BY c.merchant_id, c.id
  ), asked AS (
    INSERT INTO operator_request (merchant_id, payout_id, provider, kind, correlation_id, amount, phone, fence_until,
      next_check_at, created_at)
    SELECT c.merchant_id, c.id, c.payment_method, 'disburse', gen_random_uuid(), c.amount, c.destination_phone,
      now() + fence_ms * interval '1 millisecond', at + first_check_ms * interval '1 millisecond', at
    FROM changed c WHERE c.status = 'processing' ORDER BY c.id
    RETURNING id, payout_id, correlation_id, created_at
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id, 'payout_' || c.status, payout_told(c.self, 'pending'), at FROM changed c ORDER BY c.merchant_id, c.id
  )
  SELECT CASE c.status WHEN 'processing' THEN 'begun' ELSE 'short' END, c.id, a.id, a.correlation_id, c.merchant_id, c.amount,
    c.destination_phone, c.request_data, a.created_at
  FROM changed c LEFT JOIN asked a ON a.payout_id = c.id
  ORDER BY c.send_at, c.id;
END $$;

-- Settles payouts: the one way in which one that was sent ends, once, whoever learned the outcome; its money as a deposit's.
-- Of several outcomes for one payout in a call the first is tried. `moved` is false where the payout had ended or was not
-- begun; `status` is then what stands, null where there is none.
CREATE FUNCTION settle_payouts(
  payout_ids bigint[], to_statuses payout_status[], sources text[], amounts bigint[], operator_references text[],
  reasons text[], messages text[], evidences jsonb[], reversal_check_ms bigint[]
) RETURNS TABLE (place int, moved boolean, status payout_status)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  merchants int[] := ARRAY(SELECT DISTINCT p.merchant_id FROM payout p WHERE p.id = ANY (payout_ids));
BEGIN
  PERFORM FROM payout p WHERE p.id = ANY (payout_ids) ORDER BY p.id FOR UPDATE;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchants) ORDER BY b.merchant_id FOR UPDATE;
  RETURN QUERY
  WITH item AS MATERIALIZED (
    SELECT i.*, p.was, p.held, row_number() OVER (PARTITION BY i.id ORDER BY i.place) = 1 AS first
    FROM unnest(payout_ids, to_statuses, sources, amounts, operator_references, reasons, messages, evidences, reversal_check_ms)
      WITH ORDINALITY AS i (id, to_status, source, amount, operator_reference, reason, message, evidence, watch_ms, place)
    LEFT JOIN LATERAL (
      SELECT p.status AS was, (
        SELECT m.amount FROM movement m WHERE m.cause = 'payout:' || p.id AND m.step = 'reserve') AS held
      FROM payout p WHERE p.id = i.id LIMIT 1
    ) AS p ON true
  ), changed AS (
    UPDATE payout p
    SET status = a.to_status, settled_at = at, evidence_source = a.source,
      operator_reference = coalesce(a.operator_reference, p.operator_reference),
      failure_reason = a.reason, failure_message = a.message,
      settled_amount = CASE WHEN a.to_status = 'completed' THEN least(coalesce(a.amount, a.held), a.held) END
    FROM item a
    WHERE p.id = ANY (payout_ids) AND p.id = a.id AND a.first AND a.held IS NOT NULL
      AND a.was = 'processing' AND a.to_status IN ('completed', 'failed') AND EXISTS (
        SELECT FROM lifecycle_move m
        WHERE m.lifecycle = 'payout' AND m.from_status = a.was::text AND m.to_status = a.to_status::text)
    RETURNING p.*, p AS self, a.place, a.was, a.held, a.evidence, a.watch_ms
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
    SELECT c.merchant_id, 'payout_' || c.status, payout_told(c.self, c.was), at FROM changed c ORDER BY c.merchant_id, c.id
  ), answered AS (
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
    FROM changed c WHERE r.payout_id = ANY (payout_ids) AND r.payout_id = c.id
  )
  SELECT i.place::int, c.id IS NOT NULL, coalesce(now_.status, i.was)
  FROM item i
  LEFT JOIN changed c ON c.place = i.place
  LEFT JOIN changed now_ ON now_.id = i.id
  ORDER BY i.place;
END $$;

-- Cancels payouts that wait, of which the caller holds the rows: what was set aside for them is free again.
CREATE FUNCTION cancel_pending(payout_ids bigint[], unapproved boolean) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  at timestamptz := service_now();
  cancelled int;
BEGIN
  PERFORM FROM merchant_balance b
  WHERE b.merchant_id = ANY (ARRAY(SELECT p.merchant_id FROM payout p WHERE p.id = ANY (payout_ids)))
  ORDER BY b.merchant_id FOR UPDATE;
  WITH changed AS (
    UPDATE payout p
    SET status = 'cancelled', settled_at = at, evidence_source = 'service',
      approval = CASE WHEN unapproved THEN 'expired' ELSE p.approval END
    WHERE p.id = ANY (payout_ids) AND p.status = 'pending'
    RETURNING p.*, p AS self
  ), freed AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, held.cause, 'void', 'reserved', 'available', held.amount, at
    FROM changed c JOIN LATERAL (
      SELECT m.cause, m.amount FROM movement m WHERE m.cause = 'payout:' || c.id AND m.step = 'reserve' LIMIT 1) AS held ON true
    ORDER BY c.merchant_id, c.id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id, 'payout_cancelled', payout_told(c.self, 'pending'), at FROM changed c ORDER BY c.merchant_id, c.id
  )
  SELECT count(*) INTO cancelled FROM changed;
  RETURN cancelled;
END $$;

-- Cancels a payout of a merchant that has not begun; whoever begins it at the same moment decides by the row. `status` is
-- what stands; no row where there is none.
CREATE FUNCTION cancel_payout(merchant int, payout bigint) RETURNS TABLE (moved boolean, status payout_status)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  was payout_status;
BEGIN
  SELECT p.status INTO was FROM payout p WHERE p.id = $2 AND p.merchant_id = $1 FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  IF was = 'pending' THEN PERFORM cancel_pending(ARRAY[$2], false); END IF;
  RETURN QUERY SELECT was = 'pending', CASE was WHEN 'pending' THEN 'cancelled' ELSE was END;
END $$;

-- Cancels up to `take` payouts that nobody approved in time. @returns how many
CREATE FUNCTION expire_approvals(take int) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  late bigint[] := ARRAY(
    SELECT p.id FROM payout p
    WHERE p.approval = 'pending' AND p.status = 'pending' AND p.approval_expires_at <= service_now()
    ORDER BY p.approval_expires_at LIMIT take FOR UPDATE SKIP LOCKED);
BEGIN
  IF late = '{}' THEN RETURN 0; END IF;
  RETURN cancel_pending(late, true);
END $$;

-- Reverses disbursements that the operator gave back, on its own answer only, once: what left is available again. A deposit
-- becomes `reversed`; a payout stays `completed`, and says when it came back.
CREATE FUNCTION reverse_disbursements(causes text[], evidences jsonb[]) RETURNS TABLE (place int, moved boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  deposits bigint[] := ARRAY(SELECT transaction_of(c) FROM unnest(causes) AS c WHERE transaction_of(c) IS NOT NULL);
  payouts bigint[] := ARRAY(SELECT payout_of(c) FROM unnest(causes) AS c WHERE payout_of(c) IS NOT NULL);
  merchants int[];
BEGIN
  PERFORM FROM transaction t WHERE t.id = ANY (deposits) ORDER BY t.id FOR UPDATE;
  PERFORM FROM payout p WHERE p.id = ANY (payouts) ORDER BY p.id FOR UPDATE;
  merchants := ARRAY(
    SELECT t.merchant_id FROM transaction t WHERE t.id = ANY (deposits)
    UNION SELECT p.merchant_id FROM payout p WHERE p.id = ANY (payouts));
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchants) ORDER BY b.merchant_id FOR UPDATE;
  RETURN QUERY
  WITH item AS MATERIALIZED (
    SELECT i.*, transaction_of(i.cause) AS transaction_id, payout_of(i.cause) AS payout_id,
      row_number() OVER (PARTITION BY transaction_of(i.cause), payout_of(i.cause) ORDER BY i.place) = 1 AS first
    FROM unnest(causes, evidences) WITH ORDINALITY AS i (cause, evidence, place)
  ), deposit AS (
    UPDATE transaction t SET status = 'reversed', evidence_source = 'query'
    FROM item i
    WHERE t.id = ANY (deposits) AND t.id = i.transaction_id AND i.first AND t.transaction_type = 'deposit' AND t.status = 'success'
    RETURNING t.*, i.place, i.evidence
  ), given AS (
    UPDATE payout p SET reversed_at = at
    FROM item i
    WHERE p.id = ANY (payouts) AND p.id = i.payout_id AND i.first AND p.status = 'completed' AND p.reversed_at IS NULL
    RETURNING p.*, p AS self, i.place, i.evidence
  ), back AS MATERIALIZED (
    SELECT d.place, d.merchant_id, d.payment_method, d.settled_amount, 'transaction:' || d.id AS cause, 'deposit_reversed' AS type,
      jsonb_strip_nulls(jsonb_build_object(
        'transaction_id', d.id, 'reference', d.reference, 'amount', d.settled_amount, 'currency', 'XOF',
        'payment_method', d.payment_method, 'customer_phone', d.customer_phone, 'status', d.status,
        'previous_status', 'success', 'refund_of', d.refund_of_id)) AS data
    FROM deposit d
    UNION ALL
    SELECT g.place, g.merchant_id, g.payment_method, g.settled_amount, 'payout:' || g.id, 'payout_reversed',
      payout_told(g.self, g.status)
    FROM given g
  ), returned AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT b.merchant_id, b.cause, 'reverse', clearing_account(b.payment_method), 'available', b.settled_amount, at
    FROM back b ORDER BY b.merchant_id, b.place
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT b.merchant_id, b.type, b.data, at FROM back b ORDER BY b.merchant_id, b.place
  ), deposit_answered AS (
    UPDATE operator_request r SET next_check_at = NULL, evidence = coalesce(d.evidence, r.evidence)
    FROM deposit d WHERE r.merchant_id = d.merchant_id AND r.transaction_id = d.id AND r.kind = 'disburse'
  ), payout_answered AS (
    UPDATE operator_request r SET next_check_at = NULL, evidence = coalesce(g.evidence, r.evidence)
    FROM given g WHERE r.payout_id = ANY (payouts) AND r.payout_id = g.id
  )
  SELECT i.place::int, b.place IS NOT NULL FROM item i LEFT JOIN back b ON b.place = i.place ORDER BY i.place;
END $$;

-- Reverse, as before, of no more rows than are asked for, whatever the planner believes; also what refunds had made
-- `reversed`: then the money moves, and the status stays.
CREATE OR REPLACE FUNCTION reverse_many(transaction_ids bigint[], sources text[], evidences jsonb[])
RETURNS TABLE (place int, moved boolean, status transaction_status, shortfall bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM FROM transaction t WHERE t.id = ANY (transaction_ids) ORDER BY t.id FOR UPDATE;
  PERFORM FROM merchant_balance b
  WHERE b.merchant_id IN (SELECT t.merchant_id FROM transaction t WHERE t.id = ANY (transaction_ids))
  ORDER BY b.merchant_id FOR UPDATE;
  RETURN QUERY
  WITH item AS (
    SELECT i.*, i.ordinality::int AS place
    FROM unnest(transaction_ids, sources, evidences) WITH ORDINALITY AS i (id, source, evidence, ordinality)
  ), chosen AS (
    SELECT DISTINCT ON (i.id) i.* FROM item i ORDER BY i.id, i.place
  ), allowed AS (
    SELECT c.id, c.place, c.evidence, t.merchant_id, t.status AS was, t.settled_amount AS amount
    FROM chosen c
    JOIN transaction t ON t.id = ANY (transaction_ids) AND t.id = c.id AND t.transaction_type = 'pay'
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
    RETURNING t.*, s.place, s.was, s.evidence, s.taken, s.amount - s.taken AS rest
  ), given_back AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'transaction:' || c.id, side.step, side.account, clearing_account(c.payment_method), side.amount,
      service_now()
    FROM changed c CROSS JOIN LATERAL (VALUES
      ('reverse'::ledger_step, 'available'::ledger_account, c.taken),
      ('shortfall'::ledger_step, 'suspense'::ledger_account, c.rest)
    ) AS side (step, account, amount)
    WHERE side.amount > 0 ORDER BY c.merchant_id, c.id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id, 'payment_reversed', jsonb_strip_nulls(jsonb_build_object(
      'transaction_id', c.id, 'reference', c.reference, 'amount', c.settled_amount, 'currency', 'XOF',
      'payment_method', c.payment_method, 'customer_phone', c.customer_phone, 'status', c.status,
      'previous_status', c.was, 'late', c.late, 'shortfall', nullif(c.rest, 0))), service_now()
    FROM changed c ORDER BY c.merchant_id, c.id
  ), answered AS (
    UPDATE operator_request r SET next_check_at = NULL, evidence = coalesce(c.evidence, r.evidence)
    FROM changed c
    WHERE r.merchant_id = c.merchant_id AND r.transaction_id = c.id AND r.kind = 'collect'
  )
  SELECT i.place, c.id IS NOT NULL AND c.place = i.place, coalesce(c.status, t.status), c.rest
  FROM item i
  JOIN transaction t ON t.id = ANY (transaction_ids) AND t.id = i.id
  LEFT JOIN changed c ON c.id = i.id
  ORDER BY i.place;
END $$;

-- What is available to merchants that owe, from before it was taken at once.
INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
SELECT merchant_id, 'receivable:' || gen_random_uuid(), 'recover', 'available', 'suspense', least(available, receivable), service_now()
FROM merchant_balance WHERE receivable > 0 AND available > 0 ORDER BY merchant_id;

REVOKE EXECUTE ON FUNCTION payout_of, payout_digest, payout_told, create_payouts, begin_payouts, settle_payouts, cancel_pending,
  cancel_payout, expire_approvals, reverse_disbursements FROM PUBLIC;
GRANT EXECUTE ON FUNCTION payout_digest, create_payouts, begin_payouts, settle_payouts, cancel_payout, expire_approvals,
  reverse_disbursements TO payments_service;
