-- The verbs of bulk pay. Whoever locks several locks in this order: the merchant's access, batches, their recipients, requests
-- to operators, balances.

-- What the log tells of a batch.
CREATE FUNCTION batch_told(batch, was batch_status) RETURNS jsonb LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'batch_id', $1.id, 'title', $1.title, 'status', $1.status, 'previous_status', was, 'approval', $1.approval, 'currency', 'XOF',
    'recipient_count', $1.recipient_count, 'processing_count', $1.processing_count, 'succeeded_count', $1.succeeded_count,
    'failed_count', $1.failed_count, 'cancelled_count', $1.cancelled_count, 'total_amount', $1.total_amount,
    'paid_amount', $1.paid_amount, 'started_at', $1.started_at))
$$;

-- The person behind whoever acts, `member:7` or `api_key:12`, where one is known.
CREATE FUNCTION member_behind(merchant int, actor text) RETURNS int LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT CASE split_part(actor, ':', 1) WHEN 'member' THEN split_part(actor, ':', 2)::int
    WHEN 'api_key' THEN (
      SELECT k.issued_to_id FROM api_key k WHERE k.id = split_part(actor, ':', 2)::int AND k.merchant_id = merchant) END
$$;

-- Whether a credential may still act. Takes the lock that whoever ends access waits for.
CREATE FUNCTION may_act(merchant int, credential int, credential_version int) RETURNS boolean LANGUAGE plpgsql
SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(72707373, merchant);
  RETURN EXISTS (
    SELECT FROM api_key k JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
    WHERE k.id = credential AND k.merchant_id = merchant AND k.version = credential_version AND k.revoked_at IS NULL);
END $$;

-- SHA-256 of what is approved: who is paid what, and how.
CREATE FUNCTION batch_digest(batch) RETURNS bytea LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT sha256(convert_to(format('batch:v1|%s|%s|%s|%s', $1.merchant_id, $1.id, $1.recipient_count, $1.total_amount)
    || coalesce(string_agg(format(E'\n%s|%s|%s|%s', r.payment_method, r.account, r.amount, r.name), '' ORDER BY r.id), ''), 'UTF8'))
  FROM batch_recipient r WHERE r.batch_id = $1.id
$$;

-- Recipients are sent by one job, whatever their batch (`resources/batches/send.ts`).
CREATE FUNCTION enqueue_batches() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM graphile_worker._private_jobs j WHERE j.key = 'batches.send' AND j.is_available AND j.run_at <= now()
  ) THEN PERFORM graphile_worker.add_job('batches.send', '{}', job_key => 'batches.send'); END IF;
END $$;

-- What waits for its turn is enqueued: also what became due while nothing ran.
CREATE FUNCTION enqueue_due_batches() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF EXISTS (
    SELECT FROM batch b
    WHERE b.status = 'processing' AND b.cancel_asked_at IS NULL
      AND b.processing_count + b.succeeded_count + b.failed_count + b.cancelled_count < b.recipient_count
      AND b.merchant_id NOT IN (SELECT m.id FROM merchant m WHERE m.status <> 'active')
      AND b.merchant_id NOT IN (SELECT o.merchant_id FROM merchant_balance o WHERE o.receivable > 0)
      AND NOT EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL)
  ) THEN PERFORM enqueue_batches(); END IF;
END $$;

-- Adds recipients to a draft that the caller has locked, in their order.
CREATE FUNCTION write_recipients(batch int, names text[], accounts text[], amounts bigint[], methods provider[], added_by int)
RETURNS batch LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  grown batch;
BEGIN
  INSERT INTO batch_recipient (merchant_id, batch_id, name, account, amount, payment_method)
  SELECT b.merchant_id, b.id, i.name, i.account, i.amount, i.method
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

-- Makes a draft. With `retried` it has those who failed in that batch, and no arrays.
CREATE FUNCTION create_batch(
  merchant int, credential int, credential_version int, maker text, effect text, title text, method provider,
  names text[], accounts text[], amounts bigint[], methods provider[], retried int DEFAULT NULL
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
    SELECT b.* INTO made FROM batch b WHERE b.retry_of_id = retried AND b.status <> 'cancelled';
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
  made := write_recipients(made.id, names, accounts, amounts, methods, member_behind(merchant, maker));
  INSERT INTO event (merchant_id, type, data, created_at) VALUES (merchant, 'batch_draft', batch_told(made, NULL), at);
  RETURN QUERY SELECT 'made', made.id;
END $$;

-- Adds recipients to a draft, all or none.
CREATE FUNCTION add_recipients(
  merchant int, credential int, credential_version int, adder text, effect text, batch int,
  names text[], accounts text[], amounts bigint[], methods provider[], count_max int
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
    draft := write_recipients($6, names, accounts, amounts, methods, member_behind(merchant, adder));
    INSERT INTO event (merchant_id, type, data, created_at)
    VALUES (merchant, 'batch_draft', batch_told(draft, 'draft'), service_now());
  END IF;
  RETURN QUERY SELECT coalesce(refused, 'added'), draft.status, draft.recipient_count;
END $$;

-- Sets the money of a draft aside, in one movement, and lets it go, or has people asked first. What is beyond the limits of
-- whoever asks is refused; `day_max` is what its token may spend in a day, null for no limit.
CREATE FUNCTION process_batch(
  merchant int, credential int, credential_version int, asker text, batch int, approval_ms bigint, connected provider[],
  payment_max bigint, operators provider[], token uuid, day_max bigint
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
  IF NOT may_act(merchant, credential, credential_version) THEN
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

-- Adds what ended to the counts of batches that the caller has locked; the last one ends its batch, and the log tells it.
CREATE FUNCTION count_ended(batch_ids int[], succeeded int[], failed int[], paid bigint[], at timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  WITH counted AS MATERIALIZED (
    SELECT b.id, b.succeeded_count + i.succeeded AS succeeded, b.failed_count + i.failed AS failed, b.paid_amount + i.paid AS paid,
      b.processing_count - i.succeeded - i.failed AS processing,
      b.succeeded_count + i.succeeded + b.failed_count + i.failed + b.cancelled_count = b.recipient_count AS is_last
    FROM unnest(batch_ids, succeeded, failed, paid) AS i (id, succeeded, failed, paid) JOIN batch b ON b.id = i.id
    WHERE b.id = ANY (batch_ids)
  ), changed AS (
    UPDATE batch b
    SET processing_count = c.processing, succeeded_count = c.succeeded, failed_count = c.failed, paid_amount = c.paid,
      status = CASE WHEN NOT c.is_last THEN b.status
        WHEN b.cancel_asked_at IS NOT NULL THEN 'cancelled'
        WHEN c.failed = 0 THEN 'completed'
        WHEN c.succeeded = 0 THEN 'failed'
        ELSE 'partially_completed' END::batch_status,
      processed_at = CASE WHEN c.is_last THEN at END
    FROM counted c WHERE b.id = ANY (batch_ids) AND b.id = c.id
    RETURNING b.*, b AS self
  )
  INSERT INTO event (merchant_id, type, data, created_at)
  SELECT c.merchant_id, CASE WHEN c.processed_at IS NULL THEN 'batch_progress' ELSE 'bulk_pay_done' END,
    batch_told(c.self, 'processing'), at
  FROM changed c ORDER BY c.merchant_id, c.id;
END $$;

-- Takes recipients whose turn it is, of each merchant and of each of its batches in turn, and writes what their operators are
-- to be asked: of the operators that can be asked now (`open`) as many as each has room for. Of one batch so many at most that
-- `batch_max` are under way, with the calls that are already (`busy`); its operators share these, so that none holds up
-- another. Where calls are quick, so many more are taken ahead, each batch by each operator, to be sent as calls end: a
-- statement for a few costs much more than for many.
CREATE FUNCTION begin_recipients(
  open provider[], rooms int[], busy_batches int[], busy_operators provider[], batch_max int,
  fence_ms bigint, first_check_ms bigint, ahead_batches int[] DEFAULT '{}', ahead_operators provider[] DEFAULT '{}',
  ahead int[] DEFAULT '{}'
) RETURNS TABLE (
  recipient_id bigint, batch_id int, merchant_id int, operator provider, request_id bigint, correlation_id uuid, amount bigint,
  phone text, created_at timestamptz
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  chosen bigint[];
  batches int[];
  merchants int[];
BEGIN
  IF EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) THEN RETURN; END IF;
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
          batch_max + more.n - going.n AS free, row_number() OVER (PARTITION BY b.id ORDER BY r.nth, here.operator) AS nth
        FROM batch b
        CROSS JOIN LATERAL (
          SELECT count(*)::int AS n FROM unnest(busy_batches) AS u (id) WHERE u.id = b.id
        ) AS going
        CROSS JOIN LATERAL (
          SELECT coalesce(sum(u.n), 0)::int AS n FROM unnest(ahead_batches, ahead) AS u (id, n) WHERE u.id = b.id
        ) AS more
        CROSS JOIN LATERAL (
          -- The operators with somebody to be sent; each has an equal share.
          SELECT o.operator, o.room, batch_max / (count(*) OVER ())::int - (
              SELECT count(*) FROM unnest(busy_batches, busy_operators) AS u (id, operator)
              WHERE u.id = b.id AND u.operator = o.operator)::int + coalesce((
              SELECT sum(u.n) FROM unnest(ahead_batches, ahead_operators, ahead) AS u (id, operator, n)
              WHERE u.id = b.id AND u.operator = o.operator), 0)::int AS share
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
  WHERE c.place <= c.room;
  IF chosen IS NULL THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock_shared(72707373, id) FROM (SELECT id FROM unnest(merchants) AS id ORDER BY id) AS merchant;
  PERFORM FROM batch b WHERE b.id = ANY (batches) ORDER BY b.id FOR UPDATE;
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
    INSERT INTO operator_request (merchant_id, recipient_id, provider, kind, correlation_id, amount, phone, fence_until,
      next_check_at, created_at)
    SELECT c.merchant_id, c.id, c.payment_method, 'disburse', gen_random_uuid(), c.amount, c.account,
      now() + fence_ms * interval '1 millisecond', at + first_check_ms * interval '1 millisecond', at
    FROM changed c ORDER BY c.id
    RETURNING id, recipient_id, correlation_id, created_at
  ), counted AS (
    UPDATE batch b SET processing_count = b.processing_count + c.n, turn_at = clock_timestamp()
    FROM (SELECT c.batch_id, count(*)::int AS n FROM changed c GROUP BY c.batch_id) AS c
    WHERE b.id = ANY (batches) AND b.id = c.batch_id
  )
  SELECT c.id, c.batch_id, c.merchant_id, c.payment_method, a.id, a.correlation_id, c.amount, c.account, a.created_at
  FROM changed c JOIN asked a ON a.recipient_id = c.id ORDER BY c.id;
END $$;

-- Brings recipients that were sent their outcomes, each once; see `settle_payouts`.
CREATE FUNCTION settle_recipients(
  recipient_ids bigint[], to_statuses recipient_status[], sources text[], amounts bigint[], operator_references text[],
  reasons text[], messages text[], evidences jsonb[], reversal_check_ms bigint[], attempts smallint[]
) RETURNS TABLE (place int, moved boolean, status recipient_status) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz;
  request record;
  batches int[] := ARRAY(SELECT DISTINCT r.batch_id FROM batch_recipient r WHERE r.id = ANY (recipient_ids) ORDER BY r.batch_id);
  merchants int[];
  known bigint[];
  statuses recipient_status[];
  helds bigint[];
  -- The last send, while its operator is not known to have it.
  sends smallint[];
  nth int;
  -- Whom each outcome moves, and what is paid.
  ids bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(recipient_ids)]);
  settled bigint[] := ids;
  counted record;
BEGIN
  PERFORM FROM batch b WHERE b.id = ANY (batches) ORDER BY b.id FOR UPDATE;
  SELECT array_agg(r.id), array_agg(r.status), array_agg(r.amount), array_agg(r.merchant_id), max(r.now)
    INTO known, statuses, helds, merchants, at
  FROM (
    SELECT r.id, r.status, r.amount, r.merchant_id, (SELECT service_now()) AS now
    FROM batch_recipient r WHERE r.id = ANY (recipient_ids) ORDER BY r.id FOR UPDATE
  ) AS r;
  IF array_remove(attempts, NULL) <> '{}' THEN
    FOR request IN
      SELECT r.recipient_id, r.attempt, r.state FROM operator_request r
      WHERE r.recipient_id = ANY (recipient_ids) ORDER BY r.recipient_id FOR NO KEY UPDATE
    LOOP
      IF request.state <> 'accepted' THEN sends[array_position(known, request.recipient_id)] := request.attempt; END IF;
    END LOOP;
  END IF;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchants) ORDER BY b.merchant_id FOR UPDATE;
  -- The first outcome that may move it does.
  FOR item IN 1 .. cardinality(recipient_ids) LOOP
    nth := array_position(known, recipient_ids[item]);
    IF statuses[nth] = 'processing' AND to_statuses[item] IN ('success', 'failed')
      AND (attempts[item] IS NULL OR attempts[item] = sends[nth]) THEN
      statuses[nth] := to_statuses[item];
      ids[item] := known[nth];
      IF to_statuses[item] = 'success' THEN settled[item] := least(amounts[item], helds[nth]); END IF;
    END IF;
  END LOOP;
  WITH changed AS (
    UPDATE batch_recipient r
    SET status = i.to_status, settled_at = at, evidence_source = i.source, operator_reference = i.operator_reference,
      failure_reason = i.reason, failure_message = i.message, settled_amount = i.settled
    FROM unnest(ids, to_statuses, sources, settled, operator_references, reasons, messages)
      AS i (id, to_status, source, settled, operator_reference, reason, message)
    WHERE r.id = ANY (ids) AND r.id = i.id
    RETURNING r.*
  ), paid AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'recipient:' || c.id, side.step, 'reserved', side.account, side.amount, at
    FROM changed c CROSS JOIN LATERAL (VALUES
      ('post'::ledger_step, clearing_account(c.payment_method), c.settled_amount),
      ('release'::ledger_step, 'available'::ledger_account, c.amount - c.settled_amount),
      ('void'::ledger_step, 'available'::ledger_account, CASE WHEN c.settled_amount IS NULL THEN c.amount END)
    ) AS side (step, account, amount)
    WHERE side.amount <> 0 ORDER BY c.merchant_id, c.id
  ), ended AS (
    SELECT c.batch_id, count(c.settled_amount)::int AS succeeded, (count(*) - count(c.settled_amount))::int AS failed,
      coalesce(sum(c.settled_amount), 0)::bigint AS paid
    FROM changed c GROUP BY c.batch_id
  )
  SELECT array_agg(e.batch_id) AS ids, array_agg(e.succeeded) AS succeeded, array_agg(e.failed) AS failed, array_agg(e.paid) AS paid
    INTO counted FROM ended e;
  IF counted.ids IS NOT NULL THEN
    PERFORM count_ended(counted.ids, counted.succeeded, counted.failed, counted.paid, at);
  END IF;
  UPDATE operator_request r
  SET state = CASE WHEN i.to_status = 'success' THEN 'settled' WHEN i.source <> 'service' THEN 'refused'
        ELSE 'closed' END::operator_request_state,
    -- A callback that came meanwhile and claims something else than was answered has its own question.
    next_check_at = CASE
      WHEN r.next_check_at <= at + (clock_timestamp() - now()) AND r.handle->>'claimed' <>
        CASE i.to_status WHEN 'success' THEN 'settled' ELSE 'refused' END THEN r.next_check_at
      -- What was paid may be taken back: of some operators only a question tells.
      WHEN i.to_status = 'success' THEN at + i.watch_ms * interval '1 millisecond' END,
    evidence = coalesce(i.evidence, r.evidence)
  FROM unnest(ids, to_statuses, sources, evidences, reversal_check_ms) AS i (id, to_status, source, evidence, watch_ms)
  WHERE r.recipient_id = ANY (ids) AND r.recipient_id = i.id;
  FOR item IN 1 .. cardinality(recipient_ids) LOOP
    place := item;
    moved := ids[item] IS NOT NULL;
    status := statuses[array_position(known, recipient_ids[item])];
    RETURN NEXT;
  END LOOP;
END $$;

-- Cancels what was not sent of a batch, whoever asks: nothing of it, or the rest of it. What is set aside for them is free
-- again, in one movement; what is at its operator ends as that says, and the batch with it.
CREATE FUNCTION cancel_batch(merchant int, batch int, becomes approval_status DEFAULT NULL, why jsonb DEFAULT '{}')
RETURNS TABLE (moved boolean, was batch_status, status batch_status) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  going batch;
  before batch_status;
  stopped int;
  freed bigint;
BEGIN
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

-- As before, and recipients.
CREATE FUNCTION recipient_of(cause text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN cause LIKE 'recipient:_%' AND length(cause) <= 28 AND translate(substr(cause, 11), '0123456789', '') = ''
    THEN substr(cause, 11)::bigint END
$$;
CREATE OR REPLACE FUNCTION reverse_disbursements(causes text[], evidences jsonb[]) RETURNS TABLE (place int, moved boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  deposits bigint[] := ARRAY(SELECT transaction_of(c) FROM unnest(causes) AS c WHERE transaction_of(c) IS NOT NULL);
  payouts bigint[] := ARRAY(SELECT payout_of(c) FROM unnest(causes) AS c WHERE payout_of(c) IS NOT NULL);
  recipients bigint[] := ARRAY(SELECT recipient_of(c) FROM unnest(causes) AS c WHERE recipient_of(c) IS NOT NULL);
  batches int[] := ARRAY(SELECT DISTINCT r.batch_id FROM batch_recipient r WHERE r.id = ANY (recipients));
  merchants int[];
BEGIN
  PERFORM FROM transaction t WHERE t.id = ANY (deposits) ORDER BY t.id FOR UPDATE;
  PERFORM FROM payout p WHERE p.id = ANY (payouts) ORDER BY p.id FOR UPDATE;
  PERFORM FROM batch b WHERE b.id = ANY (batches) ORDER BY b.id FOR UPDATE;
  PERFORM FROM batch_recipient r WHERE r.id = ANY (recipients) ORDER BY r.id FOR UPDATE;
  PERFORM FROM operator_request r WHERE r.transaction_id = ANY (deposits) ORDER BY r.transaction_id FOR NO KEY UPDATE;
  PERFORM FROM operator_request r WHERE r.payout_id = ANY (payouts) ORDER BY r.payout_id FOR NO KEY UPDATE;
  PERFORM FROM operator_request r WHERE r.recipient_id = ANY (recipients) ORDER BY r.recipient_id FOR NO KEY UPDATE;
  merchants := ARRAY(
    SELECT t.merchant_id FROM transaction t WHERE t.id = ANY (deposits)
    UNION SELECT p.merchant_id FROM payout p WHERE p.id = ANY (payouts)
    UNION SELECT b.merchant_id FROM batch b WHERE b.id = ANY (batches));
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchants) ORDER BY b.merchant_id FOR UPDATE;
  RETURN QUERY
  WITH item AS MATERIALIZED (
    SELECT i.*, transaction_of(i.cause) AS transaction_id, payout_of(i.cause) AS payout_id, recipient_of(i.cause) AS recipient_id,
      row_number() OVER (
        PARTITION BY transaction_of(i.cause), payout_of(i.cause), recipient_of(i.cause) ORDER BY i.place) = 1 AS first
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
  ), refunded AS (
    UPDATE batch_recipient r SET reversed_at = at
    FROM item i
    WHERE r.id = ANY (recipients) AND r.id = i.recipient_id AND i.first AND r.status = 'success' AND r.reversed_at IS NULL
    RETURNING r.*, i.place, i.evidence
  ), returned_of AS (
    UPDATE batch b SET returned_amount = b.returned_amount + r.amount
    FROM (SELECT r.batch_id, sum(r.settled_amount) AS amount FROM refunded r GROUP BY r.batch_id) AS r
    WHERE b.id = ANY (batches) AND b.id = r.batch_id
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
    UNION ALL
    SELECT r.place, r.merchant_id, r.payment_method, r.settled_amount, 'recipient:' || r.id, 'recipient_reversed',
      jsonb_build_object('batch_id', r.batch_id, 'recipient_id', r.id, 'name', r.name, 'account', r.account,
        'amount', r.settled_amount, 'currency', 'XOF', 'payment_method', r.payment_method, 'status', r.status)
    FROM refunded r
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
  ), recipient_answered AS (
    UPDATE operator_request r SET next_check_at = NULL, evidence = coalesce(b.evidence, r.evidence)
    FROM refunded b WHERE r.recipient_id = ANY (recipients) AND r.recipient_id = b.id
  )
  SELECT i.place::int, b.place IS NOT NULL FROM item i LEFT JOIN back b ON b.place = i.place ORDER BY i.place;
END $$;

REVOKE EXECUTE ON FUNCTION batch_told, member_behind, may_act, batch_digest, enqueue_batches, enqueue_due_batches, write_recipients,
  create_batch, add_recipients, process_batch, count_ended, begin_recipients, settle_recipients, cancel_batch, recipient_of
  FROM PUBLIC;
GRANT EXECUTE ON FUNCTION enqueue_due_batches, create_batch, add_recipients, process_batch, begin_recipients, settle_recipients,
  cancel_batch TO payments_service;
